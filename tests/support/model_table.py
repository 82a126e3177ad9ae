"""A table as dictionaries: what every verb must make of it, record after record.

A record lives in a *slot*, named by partition path and record key. Copy-on-write tables hold one
version in it. Merge-on-read tables hold the version of the base file and the winner of the logs,
because Hudi lets the logs settle among themselves before they meet the base file: a soft delete
in a log outlives a late row, and a late row after a hard delete may bring the base row back.
"""

import datetime as dt
import decimal
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakewright.format.hudi.bucket_hash import bucket_of

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
DELETED = "_hoodie_is_deleted"
UNSAFE = frozenset("\"#%'*/:=?\\{[]^")

_POINT = pa.struct([("a", pa.int32()), ("Of", pa.struct([("s", pa.string())]))])
RICH = (
    pa.field("select", _POINT),
    pa.field("Group", pa.list_(_POINT)),
    pa.field("map", pa.map_(pa.string(), pa.decimal128(20, 0))),
    pa.field("at", pa.timestamp("us", "UTC")),
    pa.field("raw", pa.binary()),
)

Values = Mapping[str, object]
Slot = tuple[str, str]
Group = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a table is set up."""

    mor: bool = False
    version: int = 9
    partitioned: bool = True
    composite: bool = False
    index: str = "lookup"
    ordering: pa.DataType | None = None
    soft: bool = False
    url_encode: bool = False
    buckets: int = 3
    #: With columns that are nested, named like words of SQL, or of further types.
    rich: bool = False
    #: Patterns of partitions that have another number of buckets, the first of which counts.
    rules: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        words = (
            "mor" if self.mor else "cow",
            f"v{self.version}",
            "parts" if self.partitioned else "whole",
            "two_keys" if self.composite else "one_key",
            "rules" if self.rules else self.index,
        )
        return "-".join(words)

    @property
    def key(self) -> tuple[str, ...]:
        return ("id", "sub") if self.composite else ("id",)

    @property
    def schema(self) -> pa.Schema:
        fields = [pa.field("id", pa.string())]
        if self.composite:
            fields.append(pa.field("sub", pa.int64()))
        if self.partitioned:
            fields.append(pa.field("p", pa.string()))
        if self.ordering is not None:
            fields.append(pa.field("ts", self.ordering))
        fields += [
            pa.field("s", pa.string()),
            pa.field("n", pa.int64()),
            pa.field("w", pa.int32()),
            pa.field("d", pa.date32()),
            pa.field("m", pa.decimal128(9, 2)),
            pa.field("x", pa.float64()),
        ]
        fields += RICH if self.rich else ()
        if self.soft:
            fields.append(pa.field(DELETED, pa.bool_()))
        return pa.schema(fields)

    def record_key(self, row: Values) -> str:
        if not self.composite:
            return str(row["id"])
        return ",".join(f"{name}:{_key_part(row[name])}" for name in self.key)

    def partition(self, row: Values) -> str:
        if not self.partitioned:
            return ""
        text = str(row["p"] or DEFAULT)
        if self.url_encode and text != DEFAULT:
            text = "".join(f"%{ord(c):02X}" if c in UNSAFE or c < " " else c for c in text)
        return f"p={text}"

    def slot(self, row: Values) -> Slot:
        return self.partition(row), self.record_key(row)

    def number(self, partition: str) -> int:
        """How many buckets a new partition gets."""
        found = (number for pattern, number in self.rules if re.search(pattern, partition))
        return next(found, self.buckets)

    def group(self, slot: Slot, number: int | None = None) -> Group:
        """The bucket of a slot, of so many."""
        count = number or self.number(slot[0])
        return slot[0], int(bucket_of(pa.array([slot[1]]), self.key, count)[0])


def _key_part(value: object) -> str:
    if value is None:
        return "__null__"
    return str(value) or "__empty__"


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of a record; ``hard`` is a delete that no ordering value resists."""

    values: Values
    instant: str
    deletes: bool = False
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """What a slot holds: the version in the base file, and the last word of the logs.

    ``plan`` names the merging that is planned for its group, ``since`` is the last word of the
    logs that came after the plan was made.
    """

    base: Stored | None = None
    log: Stored | None = None
    plan: str | None = None
    since: Stored | None = None


@dataclass(slots=True)
class ModelTable:
    """The dictionary. ``groups`` says which buckets have files, asked before each write."""

    kind: Kind
    groups: Callable[[], set[Group]] = set
    slots: dict[Slot, Place] = field(default_factory=dict)
    #: The buckets that a merging is planned for.
    planned: dict[Group, str] = field(default_factory=dict)
    #: How many buckets the partitions have that were written already.
    numbers: dict[str, int] = field(default_factory=dict)

    def group(self, slot: Slot) -> Group:
        """The bucket of a slot."""
        return self.kind.group(slot, self.numbers.get(slot[0]))

    # ------------------------------------------------------------------------------ reading

    def visible(self, slot: Slot) -> Stored | None:
        place = self.slots.get(slot)
        return None if place is None else self.shown(place)

    def shown(self, place: Place) -> Stored | None:
        """The version that a reader finds."""
        base, log = place.base, place.log
        if log is None:
            return base
        if base is not None and self.ordered and not log.hard and self.rank(base) > self.rank(log):
            return base
        return None if log.deletes else log

    def live(self) -> dict[Slot, Stored]:
        found = ((slot, self.visible(slot)) for slot in self.slots)
        return {slot: stored for slot, stored in found if stored is not None}

    def rows(self) -> list[dict[str, object]]:
        """The rows as a reader shows them, with Hudi's commit time, key and partition."""
        return [
            {
                **stored.values,
                **({"p": stored.values["p"] or None} if self.kind.partitioned else {}),
                "_hoodie_commit_time": stored.instant,
                "_hoodie_partition_path": slot[0],
                "_hoodie_record_key": slot[1],
            }
            for slot, stored in self.live().items()
        ]

    @property
    def ordered(self) -> bool:
        return self.kind.ordering is not None

    def rank(self, stored: Stored) -> object:
        return rank(stored.values.get("ts"), self.kind.ordering)

    # ------------------------------------------------------------------------------ writing

    def combined(self, rows: Iterable[Values]) -> dict[Slot, Values]:
        """One row per slot (with a global index: per key): the greatest, of equals the last."""
        best: dict[object, Values] = {}
        for row in rows:
            name: object = self.kind.slot(row)
            if self.kind.index == "global":
                name = self.kind.record_key(row)
            held = best.get(name)
            late = (
                held is not None
                and self.ordered
                and rank(row.get("ts"), self.kind.ordering)
                < rank(held.get("ts"), self.kind.ordering)
            )
            if not late:
                best[name] = row
        return {self.kind.slot(row): row for row in best.values()}

    def upsert(self, rows: Iterable[Values], instant: str) -> None:
        groups = self.groups() if self.kind.index == "bucket" else set()
        for slot, row in self.combined(rows).items():
            deletes = bool(row.get(DELETED))
            # A soft delete without an ordering value has nothing to be compared by.
            record = Stored(row, instant, deletes, hard=deletes and row.get("ts") is None)
            if self.kind.index == "global" and not self._leave(slot, record):
                continue
            self._merge(slot, record, groups)

    def insert(self, rows: Iterable[Values], instant: str, *, dedupe: bool = False) -> None:
        """Rows of keys that the table does not have; with ``dedupe`` others are passed over.

        A key that was deleted comes as a new one. Where keys are looked up it gets a new place,
        and what logs say of the old one is not asked; in a bucket it meets the logs.
        """
        taken = {key for _, key in self.live()} if self.kind.index == "global" else set()
        fresh = {
            slot: row
            for slot, row in self.combined(rows).items()
            if not (dedupe and (self.visible(slot) is not None or slot[1] in taken))
        }
        if self.kind.index == "bucket":
            self.upsert(fresh.values(), instant)
            return
        for slot, row in fresh.items():
            self.slots[slot] = Place(base=Stored(row, instant))

    def delete(self, slots: Iterable[Slot], instant: str) -> None:
        groups = self.groups() if self.kind.index == "bucket" else set()
        for slot in slots:
            self._merge(slot, Stored({}, instant, deletes=True, hard=True), groups)

    def overwrite(self, rows: Sequence[Values], instant: str, *, whole: bool = False) -> None:
        gone = {self.kind.partition(row) for row in rows}
        self._drop({k[0] for k in (*self.slots, *self.planned)} if whole else gone)
        for slot, row in self.combined(rows).items():
            if not row.get(DELETED):
                self.slots[slot] = Place(base=Stored(row, instant))

    def delete_partitions(self, partitions: Iterable[str]) -> None:
        self._drop(set(partitions))

    def _drop(self, gone: set[str]) -> None:
        self.slots = {k: v for k, v in self.slots.items() if k[0] not in gone}
        self.planned = {k: v for k, v in self.planned.items() if k[0] not in gone}

    def compact(self) -> None:
        """Logs are merged into base files, or files written anew: deletes leave no trace."""
        self.slots = {slot: Place(base=stored) for slot, stored in self.live().items()}

    # ----------------------------------------------------------------------------- merging

    def _merge(self, slot: Slot, record: Stored, groups: set[Group]) -> None:
        place = self.slots.get(slot, Place())
        if self._is_logged(slot, place, groups):
            plan = place.plan or (self.planned.get(self.group(slot)) if self.planned else None)
            log, since = (self._folded(held, record) for held in (place.log, place.since))
            self.slots[slot] = Place(place.base, log, plan, since)
            return
        stored = place.base
        if stored is not None and not record.hard and self._beats(stored, record):
            return
        self.slots[slot] = Place(base=None if record.deletes else record)

    def plan_merging(self, plan: str, slots: Iterable[Slot], groups: Iterable[Group]) -> None:
        """Say that these slots, and what their buckets get from now on, will be merged."""
        for slot in slots:
            place = self.slots[slot]
            self.slots[slot] = Place(place.base, place.log, plan)
        self.planned |= dict.fromkeys(groups, plan)

    def merged(self, plans: Mapping[str, Mapping[Slot, Stored]]) -> "ModelTable":
        """The table with these plans carried out; each tells what it makes of its slots."""
        slots: dict[Slot, Place] = {}
        for slot, place in self.slots.items():
            if place.plan in plans:
                place = Place(plans[place.plan].get(slot), place.since)
                if place == Place():
                    continue
            slots[slot] = place
        planned = {group: plan for group, plan in self.planned.items() if plan not in plans}
        return ModelTable(self.kind, self.groups, slots, planned, self.numbers)

    def copy(self) -> "ModelTable":
        held = (dict(self.slots), dict(self.planned), dict(self.numbers))
        return ModelTable(self.kind, self.groups, *held)

    def _is_logged(self, slot: Slot, place: Place, groups: set[Group]) -> bool:
        if not self.kind.mor:
            return False
        if self.kind.index == "bucket":
            return self.group(slot) in groups
        return place.base is not None

    def _folded(self, held: Stored | None, record: Stored) -> Stored:
        if held is None or not self.ordered:
            return record
        if record.deletes and held.hard:
            return held
        if record.hard or held.hard or not self._beats(held, record):
            return record
        return held

    def _beats(self, stored: Stored, record: Stored) -> bool:
        return self.ordered and self.rank(stored) > self.rank(record)

    def _leave(self, slot: Slot, record: Stored) -> bool:
        """Move a key out of other partitions; False where the stored row stays the newer one."""
        for other, stored in self.live().items():
            if other[1] == slot[1] and other[0] != slot[0]:
                if self._beats(stored, record):
                    return False
                hard = Stored({}, record.instant, deletes=True, hard=True)
                self._merge(other, hard, set())
        return True


def rank(value: object, kind: pa.DataType | None) -> object:
    """An ordering value in a form that Python compares as Hudi does; null counts as zero."""
    if kind is None:
        return 0
    if pa.types.is_floating(kind):
        number = 0.0 if value is None else float(value)
        if math.isnan(number):
            return (1, 0.0, 1.0)
        return (0, number, math.copysign(1, number))
    if pa.types.is_string(kind):
        return value or ""
    if pa.types.is_date(kind):
        return (value or dt.date(1970, 1, 1)).toordinal()
    if pa.types.is_timestamp(kind):
        return value or dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    if pa.types.is_decimal(kind):
        return value or decimal.Decimal(0)
    return value or 0


def counted(rows: Iterable[Values], columns: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Rows as a multiset that can be compared: NaN equals itself, an absent column is null."""
    return Counter(tuple(_cell(row.get(name)) for name in columns) for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    return repr(value)
