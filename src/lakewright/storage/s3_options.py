"""The settings of S3 and compatible stores, readable without the extra that obeys them."""

from lakewright.model.options import declare, parse_bool


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip()


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86_400:
        raise ValueError(text)
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000:
        raise ValueError(text)
    return value


ENDPOINT = declare(
    "s3.endpoint",
    _text,
    "",
    doc="Address of a compatible server, as http://host:port; without it, that of AWS.",
    since="0.1",
    allowed="a URL",
    old_keys=("fs.s3a.endpoint",),
)
REGION = declare(
    "s3.region",
    _text,
    "",
    doc="Region of the bucket; without it, what the environment or the profile says.",
    since="0.1",
    allowed="a region name",
    old_keys=("fs.s3a.endpoint.region",),
)
ACCESS_KEY = declare(
    "s3.access-key",
    _text,
    "",
    doc="Access key; without it, the usual chain (environment, profile, instance role).",
    since="0.1",
    allowed="text, together with s3.secret-key",
    old_keys=("fs.s3a.access.key",),
)
SECRET_KEY = declare(
    "s3.secret-key",
    _text,
    "",
    doc="Secret that belongs to s3.access-key.",
    since="0.1",
    allowed="text, together with s3.access-key",
    old_keys=("fs.s3a.secret.key",),
)
SESSION_TOKEN = declare(
    "s3.session-token",
    _text,
    "",
    doc="Token of temporary credentials.",
    since="0.1",
    allowed="text",
    old_keys=("fs.s3a.session.token",),
)
PROFILE = declare(
    "s3.profile",
    _text,
    "",
    doc="Named profile of the AWS configuration files.",
    since="0.1",
    allowed="a profile name",
)
ANONYMOUS = declare(
    "s3.anonymous",
    parse_bool,
    False,
    doc="Read public buckets without credentials.",
    since="0.1",
    allowed="true or false",
)
PATH_STYLE = declare(
    "s3.path-style",
    parse_bool,
    None,
    doc="Name the bucket in the path instead of the host; without it, true with s3.endpoint.",
    since="0.1",
    allowed="true or false",
    old_keys=("fs.s3a.path.style.access",),
)
CONDITIONAL_WRITES = declare(
    "s3.conditional-writes",
    parse_bool,
    True,
    doc="Whether the server honours If-None-Match and If-Match on a put, as S3 does since 2024. "
    "One that ignores them lets two writers win: say false, and writing needs a lock.",
    since="0.1",
    allowed="true or false",
)
TIMEOUT = declare(
    "s3.timeout",
    _seconds,
    60.0,
    doc="Seconds to wait for a connection, and for each piece of an answer.",
    since="0.1",
    allowed="more than 0, less than 86400",
)
ATTEMPTS = declare(
    "s3.attempts",
    _count,
    5,
    doc="How often a request is sent in all, with growing pauses, before it counts as failed.",
    since="0.1",
    allowed="1 to 1000",
)
THREADS = declare(
    "s3.threads",
    _count,
    16,
    doc="How many requests a listing, a batched delete or a large read sends at once.",
    since="0.1",
    allowed="1 to 1000",
)
