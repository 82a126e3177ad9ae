"""Leaving out slices by what the footers of their base files say.

Only a slice without logs can be judged by its base file: a log may add a matching row to any
group. A footer that cannot be read keeps its slice; whoever reads the rows reports it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.base_pruning import file_ranges, may_contain_key
from lakewright.format.hudi.config import KeyGenerator, TableConfig
from lakewright.format.hudi.key_text import complex_key, simple_key
from lakewright.model.errors import Corrupt, Invalid, NotFound, Unsupported
from lakewright.model.expression.analyse import equal_values, references
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.prune import Ranges
from lakewright.model.files import BaseFile, FileSlice, PartitionDescriptor
from lakewright.model.options import declare
from lakewright.model.schema import (
    BOOLEAN,
    DATE,
    INT,
    LONG,
    META_COLUMNS,
    META_FIELDS,
    RECORD_KEY,
    STRING,
    Struct,
)
from lakewright.storage.port import Storage
from lakewright.table.pruning import Path, Reason, Tally, compile_filters, partition_ranges


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


FOOTERS = declare(
    "lakewright.read.footers",
    _count,
    256,
    doc="How many footers one listing reads to leave out files by statistics and bloom filters; "
    "files beyond that are kept, and their row groups are judged when they are read.",
    since="0.1",
    allowed="a whole number, 0 for none",
)

_THREADS = 8
#: A conjunction of long IN lists over a composite key is not worth its product.
_MOST_KEYS = 1_000
#: Types whose values have one text form in record keys.
_PLAIN_TYPES = frozenset({STRING, INT, LONG, BOOLEAN, DATE})
_ALWAYS_NAMED = frozenset({KeyGenerator.GLOBAL_DELETE})
_NEVER_NAMED = frozenset({KeyGenerator.SIMPLE, KeyGenerator.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class Question:
    """What a listing wants to know of each file."""

    storage: Storage
    may_match: Callable[[Ranges], bool]
    paths: frozenset[Path]
    keys: tuple[str, ...] | None
    schema: Struct


def ask(
    storage: Storage, config: TableConfig, schema: Struct, filters: Sequence[BoundExpression]
) -> Question | None:
    """Return the question that filters put to footers; None where footers cannot answer.

    Partition columns are shown from the path, so files are not asked for them. In a table
    whose columns were renamed (its fields have ids) a name in a file may mean another column.
    """
    if any(field.id is not None for field in schema):
        return None
    partition = {field.name for field in config.partition_fields}
    named = frozenset().union(*(references(condition) for condition in filters))
    paths = frozenset(path for path in named if path[0] not in partition)
    keys = key_candidates(config, schema, filters)
    if not paths and keys is None:
        return None
    stored = Struct((*META_FIELDS, *schema.without(frozenset(META_COLUMNS))))
    return Question(storage, compile_filters(filters), paths, keys, stored)


class FooterPruner:
    """Judges slices by footers, up to a number of them over its life."""

    def __init__(self, question: Question, budget: int) -> None:
        self._question = question
        self._target = to_arrow_schema(question.schema)
        self._left = budget

    def keep(
        self, partition: PartitionDescriptor, slices: Sequence[FileSlice], tally: Tally
    ) -> Sequence[FileSlice]:
        """Return the slices whose files may hold matching rows, and count the others."""
        bases = [s.base for s in slices if s.base is not None and not s.logs][: self._left]
        if not bases:
            return slices
        self._left -= len(bases)
        known = partition_ranges(partition.values)
        gone = {base.file_id: why for base, why in self._judged(bases, known) if why}
        for reason in gone.values():
            tally.dropped(reason, 1)
        return [s for s in slices if s.group.file_id not in gone]

    def _judged(
        self, bases: Sequence[BaseFile], known: Ranges
    ) -> list[tuple[BaseFile, Reason | None]]:
        if len(bases) == 1:  # one bucket of many, say: threads take longer to start than to read
            return [(bases[0], self._reason(bases[0], known))]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="footers") as pool:
            reasons = pool.map(lambda base: self._reason(base, known), bases)
            return list(zip(bases, reasons, strict=True))

    def _reason(self, base: BaseFile, known: Ranges) -> Reason | None:
        question = self._question
        try:
            footer = read_footer(question.storage, base.path, base.size)
            ranges = {**file_ranges(footer, question.paths, self._target), **known}
            if not question.may_match(ranges):
                return Reason.STATISTICS
            if question.keys is not None and not may_contain_key(footer, question.keys):
                return Reason.KEYS
        except (Corrupt, NotFound, Unsupported):
            return None
        return None


def key_candidates(
    config: TableConfig, schema: Struct, filters: Sequence[BoundExpression]
) -> tuple[str, ...] | None:
    """Return every record key that a matching row can have, where the filters pin it down."""
    given = _pinned(filters, (RECORD_KEY,))
    if given is not None:
        return tuple(str(key) for key in given if key is not None)
    partition = {field.name for field in config.partition_fields}
    if not partition.isdisjoint(config.record_key):
        return None  # the path shows other values than the key holds: null for empty text
    values = [_pinned(filters, tuple(name.split("."))) for name in config.record_key]
    if not values or any(v is None for v in values):
        return None
    choices = [sorted(v, key=repr) for v in values if v is not None]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > _MOST_KEYS or not all(_is_plain(schema, name) for name in config.record_key):
        return None
    try:
        return tuple(key for row in product(*choices) for key in _key_texts(config, row))
    except Invalid:
        return None  # no row can have such a key (null or empty), but that is not ours to say


def _pinned(filters: Sequence[BoundExpression], path: Path) -> frozenset[object] | None:
    found = (equal_values(condition, path) for condition in filters)
    return next((values for values in found if values is not None), None)


def _is_plain(schema: Struct, name: str) -> bool:
    return name in schema and schema.field(name).type in _PLAIN_TYPES


def _key_texts(config: TableConfig, row: Sequence[object]) -> tuple[str, ...]:
    names = config.record_key
    if len(names) > 1 or config.key_generator in _ALWAYS_NAMED:
        return (complex_key(names, row),)
    plain = simple_key(names[0], row[0])
    if config.key_generator in _NEVER_NAMED:
        return (plain,)
    # Releases differ on whether a single field is named: "42" or "id:42".
    return plain, complex_key(names, row)
