"""What is chosen once, when a table is made: by an argument, never by an option.

Properties and options may repeat what the arguments say, under whichever of Hudi's names. Those
that say something else would count for nothing, or contradict the rest of the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewright.format.hudi.change_records import CDC_ENABLED, CDC_MODE
from lakewright.format.hudi.config import (
    HIVE_STYLE,
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    URL_ENCODE,
)
from lakewright.format.hudi.merge_settings import MODE
from lakewright.index.layout import BUCKETS, HASH_FIELDS, INDEX_TYPE, PARTITION_RULES, RULE_TYPE
from lakewright.model.errors import Invalid, InvalidOption
from lakewright.model.option_names import PROPERTIES, PROPERTY_PREFIXES
from lakewright.model.options import parse_names

_WRITE = "hoodie.datasource.write."


@dataclass(frozen=True, slots=True)
class _Choice:
    """An argument, the names under which a table stores it, and those that writers have for it."""

    argument: str
    stored: tuple[str, ...]
    written: tuple[str, ...] = ()


#: Choices that properties never make: they may repeat them.
_BY_ARGUMENT = (
    _Choice("key", ("hoodie.table.recordkey.fields",), (f"{_WRITE}recordkey.field",)),
    _Choice("partition_by", ("hoodie.table.partition.fields",), (f"{_WRITE}partitionpath.field",)),
    _Choice(
        "order_by",
        ("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
        (f"{_WRITE}precombine.field",),
    ),
    _Choice("type", ("hoodie.table.type",), (f"{_WRITE}table.type",)),
    _Choice("version", ("hoodie.table.version",), ("hoodie.write.table.version",)),
)
#: Choices that properties may make under the name by which they are stored.
_BY_EITHER = (
    _Choice("merge_mode", (MODE,), ("hoodie.write.record.merge.mode",)),
    _Choice(
        "key_generator",
        (KEY_GENERATOR_TYPE, KEY_GENERATOR_CLASS),
        (f"{_WRITE}keygenerator.type", f"{_WRITE}keygenerator.class"),
    ),
    _Choice("hive_style", (HIVE_STYLE,)),
    _Choice("url_encode", (URL_ENCODE,)),
    _Choice("index", (INDEX_TYPE.key,)),
    _Choice("buckets", (BUCKETS.key, PARTITION_RULES.key, RULE_TYPE.key)),
    _Choice("hash_by", (HASH_FIELDS.key,)),
)
_OF_COLUMNS = ("key", "partition_by", "order_by", "hash_by")
_CHANGES = (CDC_ENABLED.key, CDC_MODE.key)


def check_properties_agree(given: Mapping[str, str], made: Mapping[str, str]) -> None:
    """Refuse properties of a new table that choose otherwise than what it is ``made`` of."""
    for choice in (*_BY_ARGUMENT, *_BY_EITHER):
        names = choice.written if choice in _BY_EITHER else (*choice.stored, *choice.written)
        for key in names:
            if key in given and not _is_made(choice, given[key], made):
                raise Invalid(
                    f"the property {key}={given[key]} contradicts the rest of the request.",
                    next_step=f"Leave it out, and give the argument {choice.argument}.",
                    key=key,
                )


def check_options_agree(options: Mapping[str, str], made: Mapping[str, str]) -> None:
    """Refuse options that choose for a new table, which options do not do."""
    for choice in (*_BY_ARGUMENT, *_BY_EITHER):
        for key in (*choice.stored, *choice.written):
            if key in options and not _is_made(choice, options[key], made):
                raise _no_choice(key, options[key], f"the argument {choice.argument}")
    for key, value in options.items():
        is_property = key in PROPERTIES or key in _CHANGES or key.startswith(PROPERTY_PREFIXES)
        known = any(key in choice.stored for choice in (*_BY_ARGUMENT, *_BY_EITHER))
        if is_property and not known and made.get(key) != value:
            raise _no_choice(key, value, "it in properties=")


def _no_choice(key: str, value: str, instead: str) -> InvalidOption:
    return InvalidOption(
        f"{key}={value}: options say how a table is reached and written, not what it is.",
        next_step=f"Nothing was made; give {instead} to create_table.",
        key=key,
        value=value,
    )


def _is_made(choice: _Choice, value: str, made: Mapping[str, str]) -> bool:
    read = _columns if choice.argument in _OF_COLUMNS else _word
    wanted = read(value)
    return any(read(made[key]) == wanted for key in choice.stored if key in made)


def _columns(value: str) -> object:
    """Return columns; of those of partitions it may be said that they are taken as they are."""
    return tuple(name.removesuffix(":SIMPLE") for name in parse_names(value))


def _word(value: str) -> object:
    return value.strip().lower()
