"""Which partitions get another number of buckets, what that costs, and why."""

import hashlib
import html
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice

from lakewright.actions.buckets.rescale_slices import BucketTable, Moving, compare
from lakewright.actions.services.servicing import Servicing
from lakewright.format.hudi.base_footer import read_footer
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.bucket_rules.compiled import check_rules
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.errors import NotFound
from lakewright.model.files import BaseFile, FileSlice
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.storage.streams import map_bounded
from lakewright.timeline.view import TimelineView

_COLUMNS = (
    "partition",
    "buckets",
    "new buckets",
    "rows",
    "files",
    "bytes",
    "new files",
    "new bytes",
    "why",
)
#: Files whose footers are read at the same time.
_FOOTERS = 16


@dataclass(frozen=True, slots=True)
class RescaleItem:
    """A partition that gets another number of buckets.

    ``rows`` are those of the base files: logs change their number a little. ``new_files`` and
    ``new_bytes`` are estimates. ``mark`` tells the file groups apart from others.
    """

    partition: str
    before: int
    after: int
    groups: int
    files: int
    rows: int
    bytes: int
    new_files: int
    new_bytes: int
    why: str
    mark: str = field(default="", repr=False)

    def told(self) -> dict[str, object]:
        """Return what a user is told of it, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "mark"}


@dataclass(frozen=True, slots=True)
class RescalePlan(Shown):
    """What a rescale is going to do to a table.

    ``rules`` and ``pins`` are those that the table has afterwards. ``version`` is the hashing
    config that the plan was made on, None in a table with one number for all partitions; it is
    ``present`` that says how many buckets partitions have by it. ``stands_for`` is the older
    config that a rescale goes back to. ``seen`` is the timeline that the plan was made on.
    """

    table: str
    version: str | None
    present: BucketCounts = field(repr=False)
    rules: BucketRules
    pins: Mapping[str, int] = field(repr=False)
    items: tuple[RescaleItem, ...]
    seen: TimelineView = field(repr=False, compare=False)
    warnings: tuple[str, ...] = ()
    stands_for: str | None = None

    @property
    def rows(self) -> int:
        """Rows that move, about."""
        return sum(item.rows for item in self.items)

    @property
    def files(self) -> int:
        """Files that are read."""
        return sum(item.files for item in self.items)

    @property
    def bytes(self) -> int:
        """Bytes that are read."""
        return sum(item.bytes for item in self.items)

    @property
    def new_files(self) -> int:
        """Files that are written, about."""
        return sum(item.new_files for item in self.items)

    @property
    def new_bytes(self) -> int:
        """Bytes that are written, about."""
        return sum(item.new_bytes for item in self.items)

    @property
    def wanted(self) -> BucketCounts:
        """How many buckets partitions have afterwards."""
        return BucketCounts(self.rules, self.pins)

    @property
    def changes_rules(self) -> bool:
        """Whether the table has other rules or pins afterwards."""
        return (self.rules, dict(self.pins)) != (self.present.rules, dict(self.present.pins))

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines of text; ``limit`` partitions, None for all."""
        yield (
            f"rescale of {self.table}: {len(self.items)} partitions, about {self.rows} rows, "
            f"{self.files} files of {self.bytes} bytes into about {self.new_files} of "
            f"{self.new_bytes}"
        )
        items = (
            f"  {item.partition or '(table)'}: {item.before} -> {item.after} buckets, "
            f"{item.rows} rows, {item.files} files of {item.bytes} bytes into about "
            f"{item.new_files}, {item.why}"
            for item in self.items
        )
        yield from first_of(items, len(self.items), limit)
        if self.changes_rules:
            told = json.dumps(json.loads(rules_json(self.rules)), ensure_ascii=False)
            yield f"  rules afterwards: {told}"
        if self.pins:
            yield f"  {len(self.pins)} partitions keep the number that they have, by pins"
        for warning in self.warnings:
            yield f"  warning: {warning}"

    def to_json(self) -> str:
        """Return the plan for programs."""
        value = {
            "table": self.table,
            "version": self.version,
            "rules": json.loads(rules_json(self.rules)),
            "pins": dict(self.pins),
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "new_files": self.new_files,
            "new_bytes": self.new_bytes,
            "items": [item.told() for item in self.items],
            "warnings": list(self.warnings),
        }
        return json.dumps(value, ensure_ascii=False)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(str(value))}</td>' for value in _cells(item))}</tr>"
            for item in islice(self.items, SHOWN)
        )
        title = html.escape(next(self.lines(0)))
        return f"<b>{title}</b><table><tr>{head}</tr>{rows}</table>"


def _cells(item: RescaleItem) -> tuple[object, ...]:
    return (
        item.partition or "(table)",
        item.before,
        item.after,
        item.rows,
        item.files,
        item.bytes,
        item.new_files,
        item.new_bytes,
        item.why,
    )


def plan_rescale(
    work: Servicing,
    *,
    partitions: Sequence[str] | None = None,
    rules: BucketRules | None = None,
) -> RescalePlan:
    """Say what a rescale would do; nothing is written.

    ``rules`` are new ones; without them the table's own count, and partitions that were pinned
    when those were set get what they give. ``partitions`` are the only ones that move: others
    keep their number, by pins. ``Invalid`` where one of them is not there, or where its file
    groups are not those of the buckets that it has.
    """
    table = BucketTable.of(work)
    present = table.counts
    wanted = BucketCounts(present.rules if rules is None else rules)
    chosen = None if partitions is None else frozenset(partitions)
    work.progress.stage("looking for partitions to rescale")
    found = compare(table, wanted, chosen, others=rules is not None)
    pins = dict(found.pins)
    if rules is None and chosen is not None:
        # The others were not looked at, and keep their pins.
        pins = {path: number for path, number in present.pins.items() if path not in chosen}
    return RescalePlan(
        table=work.name,
        version=present.version,
        present=present,
        rules=wanted.rules,
        pins=pins,
        items=_items(table, found.moving, "the rules give another number than its pin")
        if rules is None
        else _items(table, found.moving, "the new rules give another number"),
        seen=table.state.timeline,
        warnings=() if rules is None else check_rules(rules, partitions=found.paths),
    )


def plan_back(work: Servicing, to: str, target: BucketCounts) -> RescalePlan:
    """Say what a rescale would do that gives every partition the number of an older config."""
    table = BucketTable.of(work)
    work.progress.stage("looking for partitions to rescale")
    found = compare(table, target)
    return RescalePlan(
        table=work.name,
        version=table.counts.version,
        present=table.counts,
        rules=target.rules,
        pins=target.pins,
        items=_items(table, found.moving, f"it had that number by {to}"),
        seen=table.state.timeline,
        stands_for=to,
    )


def _items(table: BucketTable, moving: Sequence[Moving], why: str) -> tuple[RescaleItem, ...]:
    bases = [piece.base for one in moving for piece in one.slices if piece.base is not None]
    rows = _rows_of(table.state.timeline, bases)
    return tuple(_item(one, rows, why) for one in moving)


def _item(one: Moving, rows: Mapping[str, int], why: str) -> RescaleItem:
    bases = [piece.base for piece in one.slices if piece.base is not None]
    count = sum(rows[base.path] for base in bases)
    return RescaleItem(
        partition=one.partition,
        before=one.before,
        after=one.after,
        groups=len(one.slices),
        files=sum(len(piece.paths) for piece in one.slices),
        rows=count,
        bytes=sum(piece.size for piece in one.slices),
        new_files=_filled(count, one.after) if bases else min(one.after, len(one.slices)),
        new_bytes=sum(p.size if p.base is None else max(p.base.size, 0) for p in one.slices),
        why=why,
        mark=mark_of(one.slices),
    )


def mark_of(slices: Iterable[FileSlice]) -> str:
    """Return a short text that differs where the file groups do."""
    names = "\n".join(sorted(piece.group.file_id for piece in slices))
    return hashlib.blake2b(names.encode(), digest_size=12).hexdigest()


def _filled(rows: int, buckets: int) -> int:
    """Return about how many of the buckets get a row."""
    if not rows or buckets == 1:
        return min(rows, 1)
    return max(1, round(-buckets * math.expm1(rows * math.log1p(-1 / buckets))))


def _rows_of(view: TimelineView, bases: Sequence[BaseFile]) -> Mapping[str, int]:
    """Return the rows of base files: commits tell them, and footers of files that are older."""
    by_instant: defaultdict[str, set[str]] = defaultdict(set)
    for base in bases:
        by_instant[base.instant].add(base.path)
    rows: dict[str, int] = {}
    told = [instant for instant in view.data() if instant.requested in by_instant]
    for instant, body in view.commits(told):
        wanted = by_instant[instant.requested]
        for stats in body.write_stats.values():
            rows.update({s.path: s.num_writes for s in stats if s.path and s.path in wanted})

    def count(base: BaseFile) -> tuple[str, int]:
        try:
            return base.path, read_footer(view.storage, base.path, base.size).num_rows
        except NotFound:
            return base.path, 0  # cleaned meanwhile: applying the plan will find that out

    untold = (base for base in bases if base.path not in rows)
    return rows | dict(map_bounded(count, untold, threads=_FOOTERS))
