"""The client behind an S3 storage: made once per process and settings; its errors made ours."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

import boto3.session
import botocore.config
import botocore.exceptions
from botocore import UNSIGNED

from lakewright.model.errors import Denied, Invalid, LakewrightError, NotFound, Unavailable
from lakewright.storage import s3_options as settings

Client: TypeAlias = Any
"""boto3 makes its clients at run time; there is no class to name."""

Answer: TypeAlias = Any
"""What a client returns: nested dicts, as the service's own reference describes them."""

_DENIED = frozenset(
    {
        "AccessDenied",
        "AllAccessDisabled",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
    }
)
"""Codes of a refusal; a bare 401 or 403 counts too, as HEAD answers carry no code."""


def client_for(options: Mapping[str, str]) -> Client:
    """Return the shared client for these settings; a forked process gets its own."""
    return _client(os.getpid(), tuple(sorted(options.items())))


@lru_cache(maxsize=32)
def _client(process: int, items: tuple[tuple[str, str], ...]) -> Client:
    options = dict(items)
    endpoint = settings.ENDPOINT.read(options)
    path_style = settings.PATH_STYLE.read(options)
    if path_style is None:
        path_style = bool(endpoint)
    config: dict[str, Any] = {
        "connect_timeout": settings.TIMEOUT.read(options),
        "read_timeout": settings.TIMEOUT.read(options),
        "retries": {"mode": "standard", "total_max_attempts": settings.ATTEMPTS.read(options)},
        "max_pool_connections": 2 * settings.THREADS.read(options),
        "s3": {"addressing_style": "path" if path_style else "auto"},
        # Compatible servers know the newer checksums only in part.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    if settings.ANONYMOUS.read(options):
        config["signature_version"] = UNSIGNED
    try:
        session = boto3.session.Session(profile_name=settings.PROFILE.read(options) or None)
        return session.client(
            "s3",
            endpoint_url=endpoint or None,
            region_name=settings.REGION.read(options) or session.region_name or "us-east-1",
            aws_access_key_id=settings.ACCESS_KEY.read(options) or None,
            aws_secret_access_key=settings.SECRET_KEY.read(options) or None,
            aws_session_token=settings.SESSION_TOKEN.read(options) or None,
            config=botocore.config.Config(**config),
        )
    except (botocore.exceptions.BotoCoreError, ValueError) as cause:
        raise Invalid(
            f"The settings of the S3 client are not sound: {cause}",
            next_step="Check the options that begin with s3. and the AWS configuration files.",
        ) from cause


def status_of(error: botocore.exceptions.ClientError) -> int:
    """Return the HTTP status of an answer that is an error."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


@contextmanager
def mapped(path: str, uri: str) -> Iterator[None]:
    """Turn the client's errors into ours; ``path`` is what the request was about."""
    try:
        yield
    except botocore.exceptions.ClientError as cause:
        raise _of_answer(cause, path, uri) from cause
    except (
        botocore.exceptions.NoCredentialsError,
        botocore.exceptions.PartialCredentialsError,
        botocore.exceptions.CredentialRetrievalError,
    ) as cause:
        raise Denied(
            f"There are no credentials for {uri}: {cause}.",
            next_step="Set s3.access-key and s3.secret-key, AWS_PROFILE, or s3.anonymous=true.",
            uri=uri,
        ) from cause
    except botocore.exceptions.ParamValidationError as cause:
        raise Invalid(
            f"The store cannot hold {path!r} of {uri}: {cause}",
            next_step="Choose a shorter or simpler name.",
            path=path,
        ) from cause
    except botocore.exceptions.BotoCoreError as cause:
        raise Unavailable(
            f"The store did not answer about {path!r} of {uri}: {cause}.",
            next_step="Check the endpoint and the network, and try again.",
            path=path,
            uri=uri,
        ) from cause


def _of_answer(error: botocore.exceptions.ClientError, path: str, uri: str) -> LakewrightError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = status_of(error)
    if code == "NoSuchBucket":
        return NotFound(
            f"The bucket of {uri} does not exist.",
            next_step="Create it, or correct the URI.",
            uri=uri,
        )
    if status == 404:
        return NotFound(
            f"There is no file {path!r} in {uri}.",
            next_step="Look at the folder for what there is.",
            path=path,
            uri=uri,
        )
    if code in _DENIED or status in {401, 403}:
        return Denied(
            f"The store refused access to {path!r} of {uri}: {code or status}.",
            next_step="Check the credentials and the policy of the bucket.",
            path=path,
            uri=uri,
            reason=code,
        )
    if status in {301, 307} or code in {"PermanentRedirect", "AuthorizationHeaderMalformed"}:
        return Invalid(
            f"The bucket of {uri} lies in another region: {error}.",
            next_step="Set s3.region to the region of the bucket.",
            uri=uri,
        )
    return Unavailable(
        f"The store failed on {path!r} of {uri}: {error}.",
        next_step="Try again later.",
        path=path,
        uri=uri,
        status=status,
    )
