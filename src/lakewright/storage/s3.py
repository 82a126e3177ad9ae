"""S3 and compatible object stores, through boto3 (extra ``s3``).

How the promises of the port are kept:

* ``create`` is a put with ``If-None-Match: *``, ``replace_if`` one with ``If-Match``. Both carry
  a token of their own in the object's metadata. When an answer is lost the put is sent again,
  and where that is refused the token that lies there says whether the first copy had arrived.
  Only when it is neither there nor ruled out does ``CommitStateUnknown`` say that nobody knows.
* A version is the ETag, so writing the same bytes again may keep the version.
* ``move`` is a copy and a delete, and its look at the target comes before: two movers to one
  target can overtake each other there.
* Listings rely on the sorted order that S3 promises. Keys that no path of the port can name
  (``a//b``, a trailing slash) are left out.
"""

import logging
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, cast

import botocore.exceptions as client_errors

from lakewright.model.errors import CommitStateUnknown, InvalidPath, Unavailable, Unsupported
from lakewright.model.logs import facts
from lakewright.storage import s3_options as settings
from lakewright.storage.paths import (
    already_exists,
    check_file,
    check_path,
    check_range,
    join,
    not_found,
)
from lakewright.storage.port import FileStat, Folder
from lakewright.storage.s3_client import Answer, Client, client_for, mapped, status_of
from lakewright.storage.s3_file import TAIL, RangedFile
from lakewright.storage.s3_listing import Listing
from lakewright.storage.s3_upload import Upload
from lakewright.storage.streams import map_bounded

log = logging.getLogger(__name__)

_TOKEN = "lakewright-token"
_PART = 8 << 20
_DELETE_BATCH = 1_000
_NOT_DONE = frozenset({409, 429, 503})
"""Answers that say that a put was turned away and may be sent again."""

_NEVER_SENT = (client_errors.EndpointConnectionError, client_errors.ConnectTimeoutError)
_BROKEN_OFF = (
    client_errors.HTTPClientError,
    client_errors.IncompleteReadError,
    client_errors.ResponseStreamingError,
)


class S3Storage:
    """The objects below ``s3://bucket/prefix``; ``s3a://`` and ``s3n://`` are the same place."""

    __slots__ = ("_bucket", "_prefix", "options", "uri")

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self.uri = uri.rstrip("/")
        self.options: Mapping[str, str] = dict(options)
        bucket, _, prefix = self.uri.partition("://")[2].partition("/")
        if not bucket:
            raise InvalidPath(
                f"{uri!r} names no bucket.", next_step="Write it as s3://bucket/table.", uri=uri
            )
        self._bucket = bucket
        self._prefix = f"{check_path(prefix)}/" if prefix else ""

    def __repr__(self) -> str:
        return f"S3Storage({self.uri!r})"

    def __reduce__(self) -> tuple[Callable[..., "S3Storage"], tuple[object, ...]]:
        return (S3Storage, (self.uri, dict(self.options)))

    @property
    def can_create_atomically(self) -> bool:
        """True, unless ``s3.conditional-writes`` says that the server does not honour them."""
        return settings.CONDITIONAL_WRITES.read(self.options)

    def locate(self, path: str) -> str:
        """Return the URI, with the scheme that the root was given with."""
        return join(self.uri, check_path(path))

    def read(self, path: str) -> bytes:
        """Return the whole object."""
        return self._get(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        check_range(offset, length)
        if length == 0:
            if self.stat(path) is None:
                raise not_found(path, self.uri)
            return b""
        return self._get_range(path, offset, length)

    def open(self, path: str) -> IO[bytes]:
        """Open for random access; every later request insists on the object opened here."""
        with mapped(path, self.uri):
            try:
                tail, answer = self._get_answer(path, Range=f"bytes=-{TAIL}")
            except client_errors.ClientError as cause:
                if status_of(cause) != 416:  # the answer to any range of an empty object
                    raise
                tail, answer = b"", {"ContentRange": "bytes */0", "ETag": ""}
        size = int(answer["ContentRange"].rpartition("/")[2]) if "ContentRange" in answer else None
        etag = answer["ETag"]

        def fetch(offset: int, length: int) -> bytes:
            return self._get_parts(path, offset, length, etag)

        file = RangedFile(len(tail) if size is None else size, fetch, tail, self.locate(path))
        return cast("IO[bytes]", file)

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version."""
        head = self._head(path)
        if head is None:
            return None
        modified = head["LastModified"].timestamp()
        return FileStat(path, head["ContentLength"], modified, head["ETag"])

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        """Stream the files of a folder, a page of a thousand at a time."""
        return self._listing().files(check_path(folder), recursive=recursive)

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the folders directly inside ``folder``; none is empty."""
        return self._listing().folders(check_path(folder))

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        """Stream every folder that holds files; sizes come with the listing at no cost."""
        return self._listing().walk(check_path(folder), skip)

    def ensure_folder(self, path: str) -> None:
        """Check the path and do nothing: there are no folders without files here."""
        check_path(path)

    def create(self, path: str, data: bytes) -> bool:
        """Write an object only where nothing is yet."""
        if self.can_create_atomically:
            return self._put_on_condition(path, data, IfNoneMatch="*")
        if self.stat(path) is not None:
            return False
        self.write(path, data)
        return True

    def write(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        with mapped(path, self.uri):
            self._client().put_object(**self._object(path), Body=data)

    @contextmanager
    def writer(self, path: str) -> Iterator[IO[bytes]]:
        """Stream in parts, several on their way at once; a short file is one put."""
        upload = Upload(self._client(), self._object(path), path, self.uri)
        try:
            yield cast("IO[bytes]", upload)
            upload.finish()
        except BaseException:
            upload.abandon()
            raise

    def replace_if(self, path: str, data: bytes, version: str) -> bool:
        """Replace an object only while its version is still ``version``."""
        if self.can_create_atomically:
            return self._put_on_condition(path, data, IfMatch=version)
        current = self.stat(path)
        if current is None or current.version != version:
            return False
        self.write(path, data)
        return True

    def move(self, source: str, target: str) -> None:
        """Copy, then delete the source; a crash between leaves both."""
        origin, goal = self._object(source), self._object(target)
        if self.stat(source) is None:
            raise not_found(source, self.uri)
        if self.stat(target) is not None:
            raise already_exists(target, self.uri)
        with mapped(source, self.uri):
            self._client().copy(origin, goal["Bucket"], goal["Key"])
            self._client().delete_object(**origin)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, a thousand in a request and several requests at once."""
        threads = settings.THREADS.read(self.options)
        for _ in map_bounded(self._delete_batch, _batches(paths), threads=threads):
            pass

    def _client(self) -> Client:
        return client_for(self.options)

    def _object(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + check_file(path)}

    def _listing(self) -> Listing:
        threads = settings.THREADS.read(self.options)
        return Listing(self._client(), self._bucket, self._prefix, self.uri, threads)

    def _head(self, path: str) -> Answer | None:
        with mapped(path, self.uri):
            try:
                return self._client().head_object(**self._object(path))
            except client_errors.ClientError as cause:
                if status_of(cause) == 404:
                    return None
                raise

    def _get(self, path: str, **details: str) -> bytes:
        with mapped(path, self.uri):
            return self._get_answer(path, **details)[0]

    def _get_answer(self, path: str, **details: str) -> tuple[bytes, Answer]:
        """Get an object or a part of it; an answer that breaks off is asked for again."""
        attempts = settings.ATTEMPTS.read(self.options)
        place = self._object(path)
        for attempt in range(1, attempts + 1):
            try:
                answer = self._client().get_object(**place, **details)
                return answer["Body"].read(), answer
            except _BROKEN_OFF:
                if attempt == attempts:
                    raise
                _pause(attempt, path)
        raise AssertionError("the loop above returns or raises")

    def _get_range(self, path: str, offset: int, length: int, **details: str) -> bytes:
        with mapped(path, self.uri):
            wanted = f"bytes={offset}-{offset + length - 1}"
            try:
                data, answer = self._get_answer(path, Range=wanted, **details)
            except client_errors.ClientError as cause:
                match status_of(cause):
                    case 416:
                        return b""
                    case 412:
                        raise Unavailable(
                            f"{path!r} of {self.uri} was replaced while it was read.",
                            next_step="Open it again.",
                            path=path,
                        ) from cause
                    case _:
                        raise
        # A server that does not know ranges sends the whole.
        return data if "ContentRange" in answer else data[offset : offset + length]

    def _get_parts(self, path: str, offset: int, length: int, etag: str) -> bytes:
        if length <= 2 * _PART:
            return self._get_range(path, offset, length, IfMatch=etag)
        end = offset + length

        def part(start: int) -> bytes:
            return self._get_range(path, start, min(_PART, end - start), IfMatch=etag)

        threads = min(settings.THREADS.read(self.options), 8)
        return b"".join(map_bounded(part, range(offset, end, _PART), threads=threads))

    def _put_on_condition(self, path: str, data: bytes, **condition: str) -> bool:
        """Put once, whatever becomes of the answers; see the head of this module."""
        token = secrets.token_hex(16)
        # Repeated here and not in the client, which does not tell what it repeated, or why.
        client = client_for({**self.options, settings.ATTEMPTS.key: "1"})
        request = {**self._object(path), "Metadata": {_TOKEN: token}, **condition}
        attempts = settings.ATTEMPTS.read(self.options)
        maybe_done = False
        for attempt in range(1, attempts + 1):
            try:
                client.put_object(**request, Body=data)
            except client_errors.ClientError as cause:
                status = status_of(cause)
                if status == 412 or (status == 404 and "IfMatch" in condition):
                    return maybe_done and self._is_ours(path, token, cause)
                if status == 501:
                    raise self._unconditional(cause) from cause
                if status < 500 and status not in _NOT_DONE:
                    with mapped(path, self.uri):
                        raise
                maybe_done |= status not in _NOT_DONE
                failure: Exception = cause
            except client_errors.HTTPClientError as cause:
                maybe_done |= not isinstance(cause, _NEVER_SENT)
                failure = cause
            except client_errors.BotoCoreError:
                with mapped(path, self.uri):
                    raise
            else:
                return True
            if attempt < attempts:
                _pause(attempt, path)
        if maybe_done:
            return self._is_ours(path, token, failure)
        with mapped(path, self.uri):
            raise failure

    def _unconditional(self, cause: Exception) -> Unsupported:
        return Unsupported(
            f"The server of {self.uri} does not know conditional writes: {cause}.",
            next_step="Set s3.conditional-writes=false, and a lock for writing.",
            uri=self.uri,
        )

    def _is_ours(self, path: str, token: str, cause: Exception) -> bool:
        """Return True when our own put lies there; otherwise its fate is not known."""
        head = self._head(path)
        if head is not None and head.get("Metadata", {}).get(_TOKEN) == token:
            return True
        raise CommitStateUnknown(
            f"The store did not say whether {path!r} of {self.uri} was written: {cause}.",
            next_step="Read it before anything else.",
            path=path,
            uri=self.uri,
        ) from cause

    def _delete_batch(self, batch: Sequence[str]) -> None:
        objects = [{"Key": self._object(path)["Key"]} for path in batch]
        with mapped(batch[0], self.uri):
            answer = self._client().delete_objects(
                Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True}
            )
        refused = [e for e in answer.get("Errors", ()) if e.get("Code") != "NoSuchKey"]
        if refused:
            raise Unavailable(
                f"{len(refused)} of {len(batch)} files of {self.uri} were not deleted; the first "
                f"is {refused[0].get('Key')!r}: {refused[0].get('Code')}.",
                next_step="Check the policy of the bucket, and try again.",
                path=refused[0].get("Key"),
            )


def _pause(attempt: int, path: str) -> None:
    log.info("S3 did not answer; asking again", extra=facts(path=path, attempts=attempt))
    time.sleep(random.uniform(0.5, 1.0) * min(0.1 * 2**attempt, 5.0))


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for path in paths:
        batch.append(check_file(path))
        if len(batch) == _DELETE_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
