"""``hoodie.properties``: Java's text format, its checksum, and how it is replaced safely.

The checksum covers the database and table names alone, so it tells a foreign or half-written
file from a whole one, nothing more. A file without a checksum is accepted; one with a wrong
checksum is not.
"""

import datetime as dt
import logging
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence

from lakewright.model.errors import Conflict, Corrupt, NotFound, TableNotFound
from lakewright.model.logs import facts
from lakewright.storage.port import Storage

log = logging.getLogger(__name__)

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"

NAME = "hoodie.table.name"
DATABASE = "hoodie.database.name"
CHECKSUM = "hoodie.table.checksum"

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_ESCAPE = re.compile(r"\\(?:u(.{0,4})|(.?))", re.DOTALL)
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {
    mark: "\\" + mark for mark in "=:#!"
}


def parse_properties(data: bytes, path: str = PROPERTIES_PATH) -> dict[str, str]:
    """Read Java properties text; a key given twice has its last value.

    UTF-8 is tried before Java's Latin-1, because hand-made files hold it and Java itself
    writes plain ASCII.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        values[_unescape(key, path)] = _unescape(value, path)
    return values


def _logical_lines(text: str) -> Iterator[str]:
    """Join continued lines; comments and blank lines are left out."""
    parts: list[str] = []
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if not parts and (not line or line[0] in "#!"):
            continue
        if _is_continued(line):
            parts.append(line[:-1])
            continue
        yield "".join([*parts, line])
        parts = []
    if parts:
        yield "".join(parts)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Cut at the first separator that is not escaped: ``=``, ``:`` or white space."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    key, rest = line[:end], line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        digits, other = match.groups()
        if digits is None:
            return _CONTROLS.get(other, other)
        if not _HEX.fullmatch(digits):
            raise Corrupt(
                f"{path}: \\u{digits} is no character.",
                next_step="Mend the file: four hexadecimal digits follow \\u.",
                path=path,
            )
        return chr(int(digits, 16))

    # Java writes characters beyond 16 bits as two escapes, which only together are one.
    joined = _ESCAPE.sub(plain, text).encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "replace")


def render_properties(values: Mapping[str, str], comments: Sequence[str] = ()) -> bytes:
    """Write properties as Java does, in ASCII; sorted, so that equal values give equal bytes."""
    lines = [f"#{_escape_unicode(comment)}" for comment in comments]
    lines += [f"{_escape_key(k)}={_escape_value(v)}" for k, v in sorted(values.items())]
    return ("\n".join(lines) + "\n").encode("ascii")


def _escape_key(key: str) -> str:
    return _escape(key).replace(" ", "\\ ")


def _escape_value(value: str) -> str:
    escaped = _escape(value)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape(text: str) -> str:
    return _escape_unicode("".join(_ESCAPED.get(char, char) for char in text))


def _escape_unicode(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    return "".join(chr(code) if 0x20 <= code <= 0x7E else f"\\u{code:04X}" for code in codes)


def table_checksum(values: Mapping[str, str]) -> int:
    """Return the CRC-32 of ``database.table``, as Hudi stores it."""
    return zlib.crc32(f"{values.get(DATABASE, '')}.{values.get(NAME, '')}".encode())


def load_properties(storage: Storage) -> dict[str, str]:
    """Read the table's properties, from the backup while a writer is replacing them."""
    # The backup goes only after the new file is there: when both seem absent, a writer may
    # have finished between the two looks, and a third look settles it.
    for path in (PROPERTIES_PATH, BACKUP_PATH, PROPERTIES_PATH):
        values = _read(storage, path)
        if values is None:
            continue
        if _is_sealed(values):
            return values
        if path == PROPERTIES_PATH:
            backup = _read(storage, BACKUP_PATH)
            if backup is not None and _is_sealed(backup):
                log.warning(
                    "the properties are damaged; reading their backup",
                    extra=facts(table=storage.uri),
                )
                return backup
        return _accepted(values, path)
    raise TableNotFound(
        f"no Hudi table at {storage.uri}: {PROPERTIES_PATH} is missing.",
        next_step="Give the folder that holds .hoodie.",
        uri=storage.uri,
    )


def store_properties(storage: Storage, values: Mapping[str, str]) -> None:
    """Create or replace the table's properties; a crash at any step leaves a readable table.

    The checksum is computed here. ``Conflict`` when another writer is replacing them too.
    """
    recover_properties(storage)
    now = dt.datetime.now(dt.UTC)
    old = _read_bytes(storage, PROPERTIES_PATH)
    verb = "Properties saved on" if old is None else "Updated at"
    sealed = {**values, CHECKSUM: str(table_checksum(values))}
    stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    data = render_properties(sealed, (f"{verb} {stamp}", f"{now:%a %b %d %H:%M:%S} UTC {now:%Y}"))
    if old is None:
        if not storage.create(PROPERTIES_PATH, data):
            raise _lost(PROPERTIES_PATH)
        return
    if not storage.create(BACKUP_PATH, old):
        raise _lost(BACKUP_PATH)
    # Hadoop's local file system would check the new bytes against the old checksum file.
    storage.delete([_crc(PROPERTIES_PATH)])
    storage.write(PROPERTIES_PATH, data)
    if storage.read(PROPERTIES_PATH) != data:
        raise _lost(PROPERTIES_PATH)
    storage.delete([BACKUP_PATH, _crc(BACKUP_PATH)])


def update_properties(storage: Storage, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Set some properties and remove those given as None; return all that are stored then."""
    values = load_properties(storage)
    for key, value in changes.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    store_properties(storage, values)
    return load_properties(storage)


def recover_properties(storage: Storage) -> None:
    """Finish or undo a replacement that crashed, by the rules real Hudi follows."""
    backup = _read_bytes(storage, BACKUP_PATH)
    if backup is None:
        return
    current = _read(storage, PROPERTIES_PATH)
    if current is None or not _is_sealed(current):
        parsed = parse_properties(backup, BACKUP_PATH)
        if current is None or _is_sealed(parsed):
            storage.delete([_crc(PROPERTIES_PATH)])
            storage.write(PROPERTIES_PATH, backup)
            log.warning("properties restored from their backup", extra=facts(table=storage.uri))
    storage.delete([BACKUP_PATH, _crc(BACKUP_PATH)])


def _read_bytes(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except NotFound:
        return None


def _read(storage: Storage, path: str) -> dict[str, str] | None:
    data = _read_bytes(storage, path)
    return None if data is None else parse_properties(data, path)


def _is_sealed(values: Mapping[str, str]) -> bool:
    return values.get(CHECKSUM) == str(table_checksum(values))


def _accepted(values: dict[str, str], path: str) -> dict[str, str]:
    if CHECKSUM in values:
        expected = table_checksum(values)
        raise Corrupt(
            f"{path}: {CHECKSUM} is {values[CHECKSUM]}, but the names give {expected}.",
            next_step=f"Check {DATABASE} and {NAME}; if they are right, set {CHECKSUM} to "
            f"{expected} or remove that line.",
            path=path,
            found=values[CHECKSUM],
            expected=expected,
        )
    if NAME not in values:
        raise Corrupt(
            f"{path}: {NAME} is missing.",
            next_step="The file is cut off or is not a table's; restore it from a copy.",
            path=path,
        )
    return values


def _crc(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.crc"


def _lost(path: str) -> Conflict:
    return Conflict(
        f"another writer is replacing the table's properties ({path}).",
        next_step="Read them again and repeat the change.",
        path=path,
    )
