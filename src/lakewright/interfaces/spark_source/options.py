"""The options of ``format("lakewright")``, read and checked before anything else happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.actions.scan import ScanRequest
from lakewright.model.errors import InvalidOption
from lakewright.model.files import ReadingMode

#: Options with this prefix go to the storage, the prefix left out.
STORAGE = "storage."

_SHAPE = ("path", "columns", "where", "mode", "meta", "start")
READ = (*_SHAPE, "as_of", "end")
FOLLOW = (*_SHAPE, "readchangefeed", "max_instants", "history")


@dataclass(frozen=True, slots=True)
class Given:
    """What a user gave: Spark's options, the storage's taken apart."""

    path: str
    own: Mapping[str, str]
    storage: Mapping[str, str] = field(repr=False)


def given(
    options: Mapping[str, str],
    known: tuple[str, ...],
    *,
    prefixes: tuple[str, ...] = (),
    example: str = 'spark.read.format("lakewright").load(path)',
) -> Given:
    """Take options apart; one that is not known, and a missing path, are refused."""
    own: dict[str, str] = {}
    storage: dict[str, str] = {}
    for key, value in options.items():
        name = key.lower()
        if name.startswith(STORAGE):
            storage[name.removeprefix(STORAGE)] = value
        else:
            own[name] = value
    unknown = sorted(k for k in own if k not in known and not k.startswith(prefixes or "\0"))
    if unknown:
        more = "".join(f", {prefix}*" for prefix in prefixes)
        raise InvalidOption(
            f"unknown option {', '.join(unknown)}.",
            next_step=f"Known: {', '.join(known)}{more}, and {STORAGE}* for the storage.",
            options=unknown,
        )
    if "path" not in own:
        raise InvalidOption("there is no path.", next_step=f"Write {example}.")
    return Given(own["path"], own, storage)


def read_request(options: Mapping[str, str]) -> tuple[Given, ScanRequest]:
    """Return where to read and what to read, for a batch."""
    told = given(options, READ)
    own = told.own
    request = ScanRequest(
        where=own.get("where"),
        columns=columns(own),
        meta=flag(own, "meta"),
        mode=mode(own, ReadingMode.SNAPSHOT),
        as_of=own.get("as_of"),
        start=own.get("start"),
        end=own.get("end"),
    )
    return told, request


def shape_request(options: Mapping[str, str]) -> tuple[Given, ScanRequest]:
    """Return what decides the columns of a reading, whether it is a batch or a stream."""
    told = given(options, tuple(dict.fromkeys((*READ, *FOLLOW))))
    own = told.own
    changes = flag(own, "readchangefeed") or mode(own, ReadingMode.SNAPSHOT) is ReadingMode.CDC
    request = ScanRequest(
        columns=columns(own),
        meta=flag(own, "meta"),
        mode=ReadingMode.CDC if changes else ReadingMode.SNAPSHOT,
        as_of=own.get("as_of"),
    )
    return told, request


def columns(own: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the columns that were named, None for all."""
    told = own.get("columns")
    return None if told is None else tuple(name.strip() for name in told.split(","))


def mode(own: Mapping[str, str], default: ReadingMode) -> ReadingMode:
    """Return the reading mode that was named."""
    told = own.get("mode", default.value).lower()
    try:
        return ReadingMode.CDC if told == "changes" else ReadingMode(told)
    except ValueError as cause:
        raise InvalidOption(
            f"mode {told!r} is no reading mode.",
            next_step=f"Allowed: {', '.join(mode.value for mode in ReadingMode)} (or changes).",
            value=told,
        ) from cause


def flag(own: Mapping[str, str], name: str) -> bool:
    """Return whether an option says ``true``."""
    told = own.get(name, "false").lower()
    if told not in ("true", "false"):
        raise InvalidOption(
            f"{name} is {told!r}.", next_step="Allowed: true, false.", option=name, value=told
        )
    return told == "true"


def count(own: Mapping[str, str], name: str) -> int | None:
    """Return a whole number from 1, None where the option is absent."""
    told = own.get(name)
    if told is None:
        return None
    if not told.strip().isdecimal() or int(told) < 1:
        raise InvalidOption(
            f"{name} is {told!r}.", next_step="Allowed: a whole number from 1.", option=name
        )
    return int(told)
