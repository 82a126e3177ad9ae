"""Options of Hudi that say again what a table is, or what is done to it.

Hudi's writers are given these with every write, and pipelines carry them along. Such an option is
heard where it agrees with the table, and with the verb, and counts for nothing then. One that
does not would count for nothing too, and rows would be written otherwise than it asks: as an insert
instead of an upsert, or found by other columns. It is refused.
"""

from collections.abc import Callable, Mapping

from lakewright.format.hudi.config import HIVE_STYLE, URL_ENCODE, TableConfig
from lakewright.format.hudi.merge_settings import MODE
from lakewright.model.errors import InvalidOption
from lakewright.model.options import parse_names
from lakewright.model.writing import Operation

_WRITE = "hoodie.datasource.write."
OPERATION = f"{_WRITE}operation"
Said = Callable[[TableConfig], object]
Read = Callable[[str], object]


def _columns(text: str) -> object:
    """Return the names of columns; kinds, as in ``at:TIMESTAMP``, belong to the generator."""
    return tuple(name.partition(":")[0] for name in parse_names(text))


def _word(text: str) -> object:
    return text.strip().upper()


#: The names of one choice, how its text is read, and what the table says.
_CHOICES: tuple[tuple[tuple[str, ...], Read, Said], ...] = (
    (
        (f"{_WRITE}recordkey.field", "hoodie.table.recordkey.fields"),
        _columns,
        lambda config: config.record_key,
    ),
    (
        (f"{_WRITE}partitionpath.field", "hoodie.table.partition.fields"),
        _columns,
        lambda config: tuple(field.name for field in config.partition_fields),
    ),
    (
        (
            f"{_WRITE}precombine.field",
            "hoodie.table.precombine.field",
            "hoodie.table.ordering.fields",
        ),
        _columns,
        lambda config: config.ordering,
    ),
    (
        (f"{_WRITE}table.type", "hoodie.table.type"),
        _word,
        lambda config: config.table_type.value,
    ),
    ((MODE, "hoodie.write.record.merge.mode"), _word, lambda config: config.merge_mode.value),
    ((HIVE_STYLE,), _word, lambda config: str(config.hive_style).upper()),
    ((URL_ENCODE,), _word, lambda config: str(config.url_encode).upper()),
)


def check_table_agrees(config: TableConfig, options: Mapping[str, str]) -> None:
    """Refuse options of a write that say otherwise than the table what it is."""
    for names, read, said in _CHOICES:
        for name in names:
            if name in options and read(options[name]) != said(config):
                raise InvalidOption(
                    f"{name} is {_shown(said(config))} in the table {config.name}, but "
                    f"{options[name]!r} was given.",
                    next_step="Leave the option out: a table says itself what it is.",
                    key=name,
                    value=options[name],
                )


def check_operation_agrees(operation: Operation, options: Mapping[str, str]) -> None:
    """Refuse an option that asks for another operation than the verb that it is given to."""
    asked = options.get(OPERATION)
    # A deletion by a condition that takes whole partitions is one of partitions.
    same = {operation} | ({Operation.DELETE} if operation is Operation.DELETE_PARTITION else set())
    if asked is not None and _word(asked) not in same:
        raise InvalidOption(
            f"{OPERATION}={asked} was given to a write that is an {operation}.",
            next_step="Leave the option out, and call the verb that you mean.",
            key=OPERATION,
            value=asked,
        )


def _shown(value: object) -> str:
    names = ",".join(value) if isinstance(value, tuple) else str(value)
    return names or "nothing"
