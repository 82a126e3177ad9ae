"""Undo pins: files that must outlive cleaning for a while, because an undo may need them back.

A pin is one JSON file under the table's own folder, with the names it holds by partition and the
moment its validity ends. Whoever wants to be able to bring rows back writes the pin before the
commit that makes their files expendable. Cleaning reads all pins, and stops where one cannot be
read: what it holds is unknown then. Other software does not know pins; where it may clean the
table, a savepoint holds the files.
"""

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.model.errors import AlreadyExists, Corrupt, Invalid, NotFound
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.table.renamed_logs import other_names, with_other_names

log = logging.getLogger(__name__)

PINS_FOLDER = ".hoodie/.lakewright/pins"

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", re.ASCII)
_NONE: frozenset[str] = frozenset()
#: Beyond every moment; what is no number is not below it.
_FOREVER = 1e15


@dataclass(frozen=True, slots=True)
class Pin:
    """Files that stay until a moment.

    ``until`` is seconds since the epoch; ``files`` are names by partition; ``why`` is told to
    whoever wonders why a file is still there.
    """

    id: str
    until: float
    why: str
    files: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Pins:
    """The pins that are valid at one moment."""

    ids: frozenset[str] = frozenset()
    files: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def names(self, partition: str) -> frozenset[str]:
        """The names of the pinned files of a partition."""
        return self.files.get(partition, _NONE)


def add_pin(storage: Storage, pin: Pin) -> None:
    """Store a pin; ``AlreadyExists`` where its id is taken."""
    body = {
        "id": pin.id,
        "until": pin.until,
        "why": pin.why,
        "files": {partition: sorted(names) for partition, names in sorted(pin.files.items())},
    }
    if not storage.create(_path(pin.id), json.dumps(body, ensure_ascii=False).encode()):
        raise AlreadyExists(
            f"There is already a pin {pin.id}.", next_step="Give another id.", pin=pin.id
        )


def drop_pins(storage: Storage, *ids: str) -> None:
    """Remove pins; those that are gone already are no error."""
    storage.delete([_path(id) for id in ids])


def list_pins(storage: Storage) -> Iterator[Pin]:
    """Stream all pins, those included whose validity has ended."""
    for file in storage.list(PINS_FOLDER, stats=False):
        if file.path.endswith(".json"):
            try:
                data = storage.read(file.path)
            except NotFound:
                continue  # dropped since it was listed
            yield decode_pin(data, file.path)


def readable_pins(storage: Storage) -> Iterator[Pin]:
    """Stream the pins that can be read; the others are logged, and stay.

    For whoever lets pins go: what one holds is not to be known for that of another.
    """
    for file in storage.list(PINS_FOLDER, stats=False):
        if file.path.endswith(".json"):
            try:
                yield decode_pin(storage.read(file.path), file.path)
            except NotFound:
                continue  # dropped since it was listed
            except Corrupt as error:
                log.warning("a pin cannot be read, and stays", extra=facts(why=str(error)))


def load_pins(storage: Storage, now: float) -> Pins:
    """Return what is pinned at ``now`` (seconds since the epoch); ``Corrupt`` fails closed.

    A log that got another name since is pinned under all its names.
    """
    ids: set[str] = set()
    files: dict[str, frozenset[str]] = {}
    for pin in list_pins(storage):
        if pin.until > now:
            ids.add(pin.id)
            for partition, names in pin.files.items():
                files[partition] = files.get(partition, _NONE) | names
    others = other_names(storage) if files else {}
    return Pins(frozenset(ids), with_other_names(files, others) if others else files)


def _path(id: str) -> str:
    if not _ID.fullmatch(id):
        raise Invalid(
            f"{id!r} is no id of a pin.",
            next_step="Give up to 100 letters, digits, '.', '_' or '-', the first a letter or "
            "digit.",
            pin=id,
        )
    return f"{PINS_FOLDER}/{id}.json"


def decode_pin(data: bytes, path: str) -> Pin:
    """Read the body of a pin."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as cause:
        raise _damaged(path, str(cause)) from cause
    match body:
        case {
            "id": str(id),
            "until": int() | float() as until,
            "why": str(why),
            "files": dict(files),
        } if abs(until) < _FOREVER and all(_is_names(names) for names in files.values()):
            return Pin(id, float(until), why, {p: frozenset(names) for p, names in files.items()})
        case _:
            raise _damaged(path, "id, until, why and files are expected")


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: the pin cannot be read ({why}).",
        next_step="Nothing is cleaned while it lies there; delete it if its undo is not needed.",
        path=path,
    )
