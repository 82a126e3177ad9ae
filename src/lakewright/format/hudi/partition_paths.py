"""Partition paths: Hive's escaping, the path of a row, and the values that a path stands for."""

import datetime as dt
import decimal
import re
import struct
from collections.abc import Callable, Mapping

from lakewright.format.hudi.config import PartitionField, TableConfig
from lakewright.format.hudi.key_text import value_text
from lakewright.format.hudi.time_partitions import format_time_partition
from lakewright.model.errors import Invalid
from lakewright.model.schema import DataType, Decimal, Kind, Primitive, Struct, Timestamp

#: The folder name that stands for null (and, to every reader, for the empty text).
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
SLASHED_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
#: What local file systems and HDFS allow.
_LONGEST = 255

#: The context of the calling thread may keep fewer digits than a decimal has.
_EXACT = decimal.Context(prec=60)
_UNSAFE = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPED = re.compile("%([0-9a-fA-F]{2})")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATE_CAST = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]))?", re.ASCII
)


def escape_segment(text: str) -> str:
    """Escape a value as Hive does: only a small set of ASCII characters becomes ``%XX``."""
    return _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape_segment(text: str) -> str:
    """Turn every ``%XX`` back into its character; a stray ``%`` stays."""
    if "%" not in text:
        return text
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), text)


def partition_path(
    values: Mapping[str, object], config: TableConfig, schema: Struct | None = None
) -> str:
    """Return the path of the partition to which a row with these column values belongs.

    ``schema`` refines the text of floats, decimals and timestamps where it is given.
    """
    return "/".join(_segment(field, values, config, schema) for field in config.partition_fields)


def _segment(
    field: PartitionField, values: Mapping[str, object], config: TableConfig, schema: Struct | None
) -> str:
    if field.name not in values:
        raise Invalid(
            f"no value for the partition column {field.name!r}.",
            next_step=f"Given: {', '.join(values) or 'nothing'}.",
            column=field.name,
        )
    kind = schema.find(field.name) if schema else None
    return partition_segment(field, values[field.name], config, kind)


def partition_segment(
    field: PartitionField, value: object, config: TableConfig, kind: DataType | None
) -> str:
    """Return the part of a partition's path that one column's value makes.

    ``Invalid`` where the value cannot be part of a path: it would leave the table, vanish from
    it, or be a name that other software cannot open.
    """
    if field.kind == "TIMESTAMP":
        text = format_time_partition(value, config.properties)
    elif value is None:
        text = ""
    else:
        text = value_text(value, kind)
        if _slashed(config) and _DATE.fullmatch(text):
            text = text.replace("-", "/")
    if not text:
        text = DEFAULT_PARTITION
    elif config.url_encode:
        text = escape_segment(text)
    segment = f"{field.name}={text}" if config.hive_style else text
    _check_segment(segment, text, field.name, encoded=config.url_encode)
    return segment


def _check_segment(segment: str, text: str, column: str, *, encoded: bool) -> None:
    for name in segment.split("/"):
        why = _fault(name)
        # Where the folder is called column=.., only other software would climb up by it.
        if why is None and ".." in text.split("/"):
            why = "leads out of the table"
        if why is not None:
            raise Invalid(
                f"{text!r} cannot be part of a partition path: it {why}.",
                next_step=f"Change the values of {column!r}."
                if encoded
                else f"Change the values of {column!r}, or create the table with url encoding, "
                "which escapes all but dots.",
                column=column,
                value=text,
            )


def _fault(name: str) -> str | None:
    if name in ("", ".", ".."):
        return "makes a folder without a name" if not name else "leads to another folder"
    if "\0" in name:
        return "holds a NUL character"
    if ":" in name:
        return "holds ':', which Hudi cannot open"
    if name[0] == ".":
        return "begins with '.', and readers pass over such folders"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST:
        return f"makes a name longer than {_LONGEST} bytes"
    return None


def partition_values(path: str, config: TableConfig, schema: Struct) -> Mapping[str, object]:
    """Return the typed column values that a partition's path stands for.

    They are what Spark shows for the partition's rows. Columns whose value the path does not
    tell are left out: what is or may be a formatted time, values that do not read as the
    column's type, and all of them when several columns meet another number of levels.
    """
    fields = config.partition_fields
    if not fields:
        return {}
    texts = _texts(path, config)
    values: dict[str, object] = {}
    for field, text in zip(fields, texts, strict=False):
        if field.kind in ("TIMESTAMP", "UNKNOWN"):
            continue
        if text is None:
            values[field.name] = None
            continue
        try:
            values[field.name] = parse_value(text, schema.find(field.name))
        except ValueError:
            continue
    return values


def leads_back(
    path: str, values: Mapping[str, object], config: TableConfig, schema: Struct
) -> bool:
    """Whether rows that hold the values which a path shows would be written to that path.

    Not so where the folder cannot show what was written: ``a=b`` without Hive style, ``a%2Fb``
    without url encoding, a timestamp. ``values`` are those of ``partition_values``.
    """
    fields = config.partition_fields
    segments = path.split("/") if len(fields) > 1 else [path]
    for field, segment in zip(fields, segments, strict=False):
        if field.name not in values:
            continue  # the file tells it
        try:
            kind = schema.find(field.name)
            if partition_segment(field, values[field.name], config, kind) != segment:
                return False
        except Invalid:
            return False
    return True


def _texts(path: str, config: TableConfig) -> list[str | None]:
    fields = config.partition_fields
    segments = path.split("/")
    if len(segments) == len(fields):
        return [_segment_text(segment) for segment in segments]
    if len(fields) != 1:
        return []
    whole = path.removeprefix(f"{fields[0].name}=")
    if _slashed(config) and len(segments) == 3:
        return [whole.replace("/", "-")]
    return [whole]


def _segment_text(segment: str) -> str | None:
    name, equals, value = segment.partition("=")
    # Spark cuts at the first "=" whether or not the table has Hive style, and unescapes
    # whether or not the table has url encoding; so rows show what it makes of the path.
    text = value if equals else name
    return None if text == DEFAULT_PARTITION else unescape_segment(text)


def _slashed(config: TableConfig) -> bool:
    return config.properties.get(SLASHED_DATES, "").lower() == "true"


def parse_value(text: str, kind: DataType | None) -> object:
    """Read a value from the text in a path; ``ValueError`` where it does not fit the type.

    A column that the schema does not know is text.
    """
    match kind:
        case None:
            return text
        case Primitive(kind=primitive):
            return _PRIMITIVES[primitive](text)
        case Decimal():
            return _decimal(text, kind)
        case Timestamp():
            return _timestamp(text, kind)
        case _:
            raise ValueError(f"{kind} does not come from a path")


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError(text)


def _bounded_integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(text)
        value = int(text)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(text)
        return value

    return parse


def _double(text: str) -> float:
    if text in ("NaN", "Infinity", "-Infinity") or _NUMBER.fullmatch(text):
        return float(text)
    raise ValueError(text)


def _single(text: str) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", _double(text)))[0])
    except OverflowError as cause:
        raise ValueError(text) from cause


def _date(text: str) -> dt.date | None:
    """Read a date as Spark casts it: the month and day may be left out, anything else is null."""
    match = _DATE_CAST.fullmatch(text.strip())
    if match is None:
        return None
    try:
        return dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None


def _binary(text: str) -> bytes:
    raise ValueError("binary values are stored as hexadecimal text, which Spark does not undo")


def _decimal(text: str, kind: Decimal) -> decimal.Decimal:
    if not _NUMBER.fullmatch(text) or len(text) > 100:
        raise ValueError(text)
    step = decimal.Decimal((0, (1,), -kind.scale))
    try:
        value = decimal.Decimal(text, _EXACT).quantize(step, context=_EXACT)
    except decimal.InvalidOperation as cause:
        raise ValueError(text) from cause
    if len(value.as_tuple().digits) > kind.precision:
        raise ValueError(text)
    return value


def _timestamp(text: str, kind: Timestamp) -> dt.datetime | None:
    # Hudi writes microseconds since the epoch, which Spark does not take for a time: rows of
    # such a partition show null, here as there.
    zone = dt.UTC if kind.utc else None
    match = _TIME.fullmatch(text)
    if match is None:
        day = _date(text)
        return dt.datetime(day.year, day.month, day.day, tzinfo=zone) if day else None
    try:
        moment = dt.datetime.fromisoformat(match.group(1))
    except ValueError:
        return None
    tenths = int(match.group(2) or 0)
    return moment.replace(microsecond=tenths * 100_000, tzinfo=zone)


_PRIMITIVES: Mapping[Kind, Callable[[str], object]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT: _bounded_integer(32),
    Kind.LONG: _bounded_integer(64),
    Kind.FLOAT: _single,
    Kind.DOUBLE: _double,
    Kind.STRING: str,
    Kind.BINARY: _binary,
    Kind.DATE: _date,
}
