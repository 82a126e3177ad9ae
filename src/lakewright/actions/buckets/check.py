"""Checking a bucket index: one group per bucket, every row in the bucket of its key, metadata
that agrees.

A writer with another number of buckets, or two that made the same bucket at once, leave a table
in which keys are found twice or not at all; no error tells of it.
"""

import html
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.actions.buckets.check_task import (
    NO_BUCKET,
    CheckWork,
    SliceChecked,
    check_slice,
)
from lakewright.actions.checks.findings import KEPT
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import list_slices
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.files import FileSlice
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.table.evolution import stored_schema
from lakewright.table.pinned import PinnedTable

TWICE = "bucket-twice"
BEYOND = "bucket-beyond"
ASTRAY = "rows-astray"
META = "hashing-meta"
#: Slices that are checked together; more partitions wait until these are done.
_SLICES = 20_000


@dataclass(frozen=True, slots=True)
class BucketProblem:
    """Something wrong with the buckets of a partition.

    ``bucket-twice`` is a bucket with several groups, ``bucket-beyond`` a group whose number the
    partition does not have, ``rows-astray`` a group with rows of other buckets, and
    ``hashing-meta`` metadata that names another number than the rules that count.
    """

    code: str
    partition: str
    message: str
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.code}: {self.partition or '(table)'}: {self.message}"


@dataclass(frozen=True, slots=True)
class PartitionDamage:
    """What has to be mended in a partition.

    ``affected`` are the buckets whose rows must be written anew: those with several groups, those
    of groups with rows that belong elsewhere, and those where these rows belong. ``groups`` are
    the slices that hold their rows now.
    """

    partition: str
    buckets: int
    affected: frozenset[int]
    groups: tuple[FileSlice, ...]
    rows: int
    astray: int


@dataclass(frozen=True, slots=True, repr=False)
class BucketReport(Shown):
    """The outcome of a check: ``ok`` where nothing is wrong; ``checked`` counts what was seen.

    Very many problems are cut to the first ones; ``found`` counts them all, by code. ``damage``
    is what has to be mended, and ``disagreeing`` the partitions for which the hashing metadata
    names a wrong number, with the right one.
    """

    table: str
    checked: Mapping[str, int]
    problems: Sequence[BucketProblem]
    found: Mapping[str, int] = field(default_factory=dict)
    damage: Sequence[PartitionDamage] = ()
    disagreeing: Mapping[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every bucket has one group and every row lies in its bucket."""
        return not self.found

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the report as lines: the verdict, then the problems."""
        counts = ", ".join(f"{count} {kind}" for kind, count in self.checked.items())
        state = "sound" if self.ok else f"{sum(self.found.values())} problems"
        yield f"buckets of {self.table}: {state}; checked {counts}"
        items = (f"  {problem}" for problem in self.problems)
        yield from first_of(items, sum(self.found.values()), limit)
        if self.damage:
            yield f"  buckets.repair() plans to mend {len(self.damage)} partitions"

    def to_json(self) -> str:
        """Return the report for programs."""
        value = {
            "table": self.table,
            "ok": self.ok,
            "checked": dict(self.checked),
            "found": dict(self.found),
            "problems": [
                {name: getattr(problem, name) for name in BucketProblem.__slots__}
                for problem in self.problems
            ],
        }
        return json.dumps(value, ensure_ascii=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        title, *rest = self.lines()
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return f"<b>{html.escape(title)}</b><ul>{items}</ul>"


def check_buckets(
    work: Servicing,
    counts: BucketCounts,
    hash_fields: tuple[str, ...],
    fixed: Mapping[str, int] | None = None,
    partitions: Sequence[str] | None = None,
    *,
    rows: bool = True,
) -> BucketReport:
    """Check buckets, all or those of some partitions; nothing is changed.

    Names of files tell which groups there are; with ``rows`` the keys of all rows are hashed,
    by tasks of the engine. ``fixed`` are the numbers that the hashing metadata names.
    """
    checking = _Checking(work, counts, hash_fields)
    if fixed:
        checking.compare(fixed, partitions)
    work.progress.stage("checking buckets")
    waiting: list[tuple[str, int, Sequence[FileSlice]]] = []
    held = 0
    for partition, slices in list_slices(work.state, partitions):
        if not slices:
            continue
        waiting.append((partition, counts.number_of(partition), slices))
        held += len(slices)
        if held >= _SLICES:
            checking.add(waiting, rows=rows)
            waiting, held = [], 0
    checking.add(waiting, rows=rows)
    return checking.report()


class _Checking:
    """Collects what is found, some partitions at a time."""

    def __init__(self, work: Servicing, counts: BucketCounts, hash_fields: tuple[str, ...]) -> None:
        self._work = work
        self._counts = counts
        self._fields = hash_fields
        self._seen = {"partitions": 0, "file groups": 0, "rows": 0}
        self._problems: list[BucketProblem] = []
        self._found: Counter[str] = Counter()
        self._disagreeing: dict[str, int] = {}
        self._damage: list[PartitionDamage] = []
        self._spec = self._shared()

    def _shared(self) -> ServiceSpec | None:
        state = self._work.state
        schema = stored_schema(state)
        if schema is None:
            return None
        return ServiceSpec(
            uri=state.storage.uri,
            options=state.storage.options,
            config=state.config,
            schema=schema,
            instant="",
            pinned=PinnedTable(state),
            settings=self._work.options,
            storage=state.storage,
        )

    def compare(self, fixed: Mapping[str, int], partitions: Sequence[str] | None) -> None:
        """Compare the numbers of the hashing metadata with those that count."""
        wanted = None if partitions is None else frozenset(partitions)
        for partition, number in sorted(fixed.items()):
            if wanted is not None and partition not in wanted:
                continue
            now = self._counts.number_of(partition)
            if now != number:
                told = f"the hashing metadata names {number} buckets, the hashing config {now}."
                self._disagreeing[partition] = now
                self._problem(META, partition, told)

    def _problem(self, code: str, partition: str, message: str, rows: int = 0) -> None:
        self._found[code] += 1
        if len(self._problems) < KEPT:
            self._problems.append(BucketProblem(code, partition, message, rows))

    def add(self, found: Sequence[tuple[str, int, Sequence[FileSlice]]], *, rows: bool) -> None:
        """Check the slices of some partitions."""
        items = [
            CheckWork(piece, _bucket(piece), buckets, self._fields)
            for _, buckets, slices in found
            for piece in slices
        ]
        checked: defaultdict[str, list[SliceChecked]] = defaultdict(list)
        if rows and self._spec is not None:
            executor, progress = self._work.executor, self._work.progress
            for one in executor.map(
                check_slice, self._spec, items, size=lambda item: item.slice.size
            ):
                progress.advance(rows=one.rows, files=1)
                checked[one.partition].append(one)
        for partition, buckets, slices in found:
            self._add(partition, buckets, slices, checked.get(partition, []))

    def _add(
        self,
        partition: str,
        buckets: int,
        slices: Sequence[FileSlice],
        checked: Sequence[SliceChecked],
    ) -> None:
        self._seen["partitions"] += 1
        self._seen["file groups"] += len(slices)
        self._seen["rows"] += sum(one.rows for one in checked)
        affected: set[int] = set()
        groups: defaultdict[int, list[str]] = defaultdict(list)
        for piece in slices:
            groups[_bucket(piece)].append(piece.group.file_id)
        for bucket, ids in sorted(groups.items()):
            if not 0 <= bucket < buckets:
                told = f"{', '.join(sorted(ids))}: the partition has {buckets} buckets."
                self._problem(BEYOND, partition, told)
                affected.add(bucket)
            elif len(ids) > 1:
                told = f"bucket {bucket} has {len(ids)} groups: {', '.join(sorted(ids))}."
                self._problem(TWICE, partition, told)
                affected.add(bucket)
        for one in sorted(checked, key=lambda one: one.file_id):
            if not one.astray:
                continue
            affected.update((one.bucket, *one.targets))
            where = ", ".join(map(str, one.targets[:5])) + (", …" if len(one.targets) > 5 else "")
            told = (
                f"{one.astray} of {one.rows} rows of {one.file_id} belong into buckets {where} "
                f"of {buckets}, {one.example!r} for one."
            )
            self._problem(ASTRAY, partition, told, one.astray)
        if affected:
            rows = {one.file_id: one.rows for one in checked}
            mended = tuple(piece for piece in slices if _bucket(piece) in affected)
            self._damage.append(
                PartitionDamage(
                    partition=partition,
                    buckets=buckets,
                    affected=frozenset(affected),
                    groups=mended,
                    rows=sum(rows.get(piece.group.file_id, 0) for piece in mended),
                    astray=sum(one.astray for one in checked),
                )
            )

    def report(self) -> BucketReport:
        """Return what was found."""
        return BucketReport(
            table=self._work.name,
            checked=self._seen,
            problems=tuple(self._problems),
            found=dict(self._found),
            damage=tuple(self._damage),
            disagreeing=self._disagreeing,
        )


def _bucket(piece: FileSlice) -> int:
    number = bucket_number(piece.group.file_id)
    return NO_BUCKET if number is None else number
