"""Planning a scan: from what is asked to the slices that must be read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task, run_task
from lakewright.format.hudi.base_footer import read_footer, refuse_unknown_format
from lakewright.format.hudi.metadata.commit import PLAN_ENTRY, UNDO_ENTRY
from lakewright.index.bucket_pruner import bucket_pruner
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.render import to_sql
from lakewright.model.files import FileSlice, PartitionDescriptor, ReadingMode
from lakewright.model.instant import Action, Instant, parse_point_in_time
from lakewright.model.schema import META_COLUMNS, META_FIELDS, Struct
from lakewright.table.changes.images import change_schema
from lakewright.table.changes.plan import plan_changes
from lakewright.table.file_index import FileIndex
from lakewright.table.horizon import timeline_from, window
from lakewright.table.merge.merger import RecordMerger, custom_merger
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.pruning import Pruner, PruneReport, Tally
from lakewright.table.reader.instants import SeenInstants
from lakewright.table.reader.names import name_history
from lakewright.table.standing import files_standing
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.moments import whole_second

__all__ = [
    "PruneReport",
    "ReadSpec",
    "ReadTask",
    "ScanPlan",
    "ScanRequest",
    "plan_scan",
    "result_schema",
    "run_task",
]

#: Names the plain files of a table that Hudi took over without rewriting them.
BOOTSTRAP = "hoodie.bootstrap.base.path"
#: Slices that ``explain`` lists by name before it only counts.
EXPLAINED = 20


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What is asked of a table.

    ``where`` is an expression or SQL text. ``columns`` names the columns wanted, ``"*"`` all of
    the table's own; ``meta`` puts Hudi's five in front, where the table fills them. ``as_of`` is
    an instant time; ``start`` (exclusive) and ``end`` (inclusive) bound an incremental reading or
    a change stream.
    """

    where: Expression | str | None = None
    columns: tuple[str, ...] | None = None
    meta: bool = False
    mode: ReadingMode = ReadingMode.SNAPSHOT
    as_of: str | None = None
    start: str | None = None
    end: str | None = None

    def timed(self, zone: tzinfo) -> "ScanRequest":
        """Return the request with its times read as a user writes them: an instant, a day, a time.

        ``zone`` is that of the table's timeline. ``Invalid`` where one is no time.
        """

        def point(text: str | None) -> str | None:
            return None if text is None else parse_point_in_time(text, zone)

        return replace(self, as_of=point(self.as_of), start=point(self.start), end=point(self.end))

    def describe(self) -> str:
        """Say in a line what is asked."""
        parts = [self.mode.value]
        if self.as_of is not None:
            parts.append(f"as of {self.as_of}")
        if self.mode in _WINDOWED:
            parts.append(f"after {self.start or 'the beginning'} up to {self.end or 'now'}")
        if self.columns is not None:
            parts.append(f"columns {', '.join(self.columns) or 'none'}")
        if self.where is not None:
            text = self.where if isinstance(self.where, str) else to_sql(self.where)
            parts.append(f"where {text}")
        return ", ".join(parts)


_WINDOWED = frozenset({ReadingMode.INCREMENTAL, ReadingMode.CDC})


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """What a scan will read: the tasks, what they share, and what was left out.

    The plan is a value; running it changes nothing, and it can be run by any engine.
    """

    spec: ReadSpec
    tasks: Sequence[Task]
    report: PruneReport
    request: ScanRequest

    @property
    def state_uri(self) -> str:
        """Where the table lies."""
        return self.spec.uri

    @property
    def options(self) -> dict[str, str]:
        """The settings with which the table's storage is opened."""
        return dict(self.spec.options)

    @property
    def schema(self) -> Struct:
        """The columns of the rows."""
        return self.spec.schema

    @property
    def filter(self) -> BoundExpression | None:
        """The condition that all rows satisfy."""
        return self.spec.filter

    @property
    def mode(self) -> ReadingMode:
        """How the table is read."""
        return self.spec.mode

    @property
    def size(self) -> int:
        """Bytes of the files to read, as far as known."""
        return sum(task.size for task in self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def split_countable(self) -> tuple[int, "ScanPlan"]:
        """Count what footers alone can tell; return it with the plan for what remains.

        A slice without logs, read without a filter, has as many rows as its base file.
        """
        counted, rest = 0, []
        storage = self.spec.open_storage()
        exact = self.filter is None and self.spec.changed_by is None
        for task in self.tasks:
            plain = isinstance(task, ReadTask) and (self._ignores_logs or not task.slice.logs)
            base = task.slice.base if isinstance(task, ReadTask) and plain and exact else None
            if base is None:
                rest.append(task)
            else:
                with files_standing():
                    counted += read_footer(storage, base.path, base.size).num_rows
        spec = self.spec
        if spec.mode is not ReadingMode.CDC:
            spec = replace(spec, schema=Struct(()))
        return counted, replace(self, spec=spec, tasks=tuple(rest))

    @property
    def _ignores_logs(self) -> bool:
        return self.mode is ReadingMode.SNAPSHOT_READ_OPTIMIZED

    def explain(self) -> str:
        """Say in words what is read, what was left out, and why."""
        spec = self.spec
        lines = [
            f"Scan of {spec.config.name} at {spec.uri}: {self.request.describe()}",
            f"  columns: {', '.join(spec.schema.names) or 'none'}",
            f"  filter: {'none' if self.request.where is None else self._filter_text()}",
            f"  read: {self.report}",
        ]
        before, after = self.report.files_asked, self.report.files_named
        if after < before:
            lines.append(f"  buckets: {after} of {before} files may hold the keys")
        merged = [t for t in self.tasks if isinstance(t, ReadTask) and t.merges]
        if merged and not self._ignores_logs:
            mode = spec.config.merge_mode
            lines.append(f"  merge: {len(merged)} of {len(self.tasks)} slices have logs, by {mode}")
        lines += [f"  slice: {', '.join(task.paths)}" for task in self.tasks[:EXPLAINED]]
        if len(self.tasks) > EXPLAINED:
            lines.append(f"  … and {len(self.tasks) - EXPLAINED} more")
        return "\n".join(lines)

    def _filter_text(self) -> str:
        where = self.request.where
        return where if isinstance(where, str) else to_sql(where) if where is not None else ""


def plan_scan(state: TableState, request: ScanRequest, pruner: Pruner | None = None) -> ScanPlan:
    """Decide what must be read; only listings and metadata are touched, no rows.

    ``pruner`` is what an index leaves out; None takes the table's own buckets, if it names them.
    """
    _check(request)
    _refuse_bootstrapped(state)
    if request.mode is ReadingMode.CDC:
        return _plan_changes(state, request)
    table = table_schema(state, request.as_of)
    whole = readable_columns(state, table)
    condition = _bound(request.where, whole)
    tally = Tally()
    filters = () if condition is None else (condition,)
    if pruner is None and filters:
        upto = request.end if request.mode is ReadingMode.INCREMENTAL else None
        pruner = bucket_pruner(state, table, as_of=request.as_of, upto=upto)
    index = FileIndex(state, pruner)
    changed_by: frozenset[str] | None = None
    if request.mode is ReadingMode.INCREMENTAL:
        _require_commit_times(state)
        seen = _seen_until(state, request.end)
        instants = window(state, request.start, request.end)
        changed_by = frozenset(i.requested for i in instants)
        between = index.list_files_between(request.start, request.end, filters, tally=tally)
        tasks = _tasks(
            ((part.descriptor, part.file_slices) for part in between), _returned(state, instants)
        )
    else:
        as_of = None if request.as_of is None else whole_second(request.as_of)
        seen = SeenInstants.of(state.timeline, as_of=as_of)
        found = index.list_files_at(
            request.as_of,
            filters,
            read_optimized=request.mode is ReadingMode.SNAPSHOT_READ_OPTIMIZED,
            tally=tally,
        )
        tasks = _tasks((part.descriptor, part.file_slices) for part in found)
    spec = _spec(state, request, table, _output(request, table, whole), condition, seen)
    merger = _merger(state, request, tasks)
    spec = replace(spec, changed_by=changed_by, merger=merger)
    return ScanPlan(spec, tasks, tally.report(), request)


def result_schema(state: TableState, request: ScanRequest) -> Struct:
    """Return the columns that a scan would have; nothing is listed."""
    if request.mode is ReadingMode.CDC:
        return _change_columns(request, change_schema(table_schema(state, None)))
    table = table_schema(state, request.as_of)
    return _output(request, table, readable_columns(state, table))


def _change_columns(request: ScanRequest, shape: Struct) -> Struct:
    return (
        shape if request.columns is None else shape.select(_spread(request.columns, shape, shape))
    )


def _plan_changes(state: TableState, request: ScanRequest) -> ScanPlan:
    table = table_schema(state, None)
    shape = change_schema(table)
    condition = _bound(request.where, shape)
    tasks = tuple(plan_changes(state, request.start, request.end))
    target = _change_columns(request, shape)
    # The images of a record are bounded by the time its write took effect, archived or not.
    seen = SeenInstants.of(timeline_from(state, request.start))
    spec = _spec(state, request, table, target, condition, seen)
    spec = replace(spec, merger=_merger(state, request, tasks))
    report = PruneReport(
        partitions=len({task.partition for task in tasks}),
        partitions_kept=len({task.partition for task in tasks}),
        slices=len(tasks),
        slices_kept=len(tasks),
        files_kept=sum(len(task.paths) for task in tasks),
        bytes_kept=sum(task.size for task in tasks),
    )
    return ScanPlan(spec, tasks, report, request)


def _spec(
    state: TableState,
    request: ScanRequest,
    table: Struct,
    target: Struct,
    condition: BoundExpression | None,
    seen: SeenInstants,
) -> ReadSpec:
    storage = state.storage
    return ReadSpec(
        uri=storage.uri,
        options=storage.options,
        config=state.config,
        table_schema=table,
        schema=target,
        filter=condition,
        mode=request.mode,
        seen=seen,
        history=name_history(state, request.as_of),
        storage=storage,
    )


def _merger(state: TableState, request: ScanRequest, tasks: Sequence[Task]) -> RecordMerger | None:
    """Return the merger that the tasks need; one that is missing is told before rows are read."""
    if request.mode is ReadingMode.SNAPSHOT_READ_OPTIMIZED or not any(t.merges for t in tasks):
        return None
    return custom_merger(MergePolicy.of(state.config))


def _returned(state: TableState, instants: Sequence[Instant]) -> frozenset[str]:
    """Return the partitions that came back in a window by the undo of a drop from before it.

    By their commit times rows are none of the window's. Who read on from the drop knows only
    those that it had read before the drop, and by no commit time which ones those are.
    """
    replacing = [i for i in instants if i.action is Action.REPLACECOMMIT]
    applied: set[str] = set()
    back: dict[str, set[str]] = {}
    for _, body in state.timeline.commits(replacing):
        applied.add(body.extra.get(PLAN_ENTRY, ""))
        if UNDO_ENTRY in body.extra:
            back.setdefault(body.extra[UNDO_ENTRY], set()).update(body.write_stats)
    return frozenset(path for plan, paths in back.items() if plan not in applied for path in paths)


def _tasks(
    parts: Iterable[tuple[PartitionDescriptor, Sequence[FileSlice]]],
    returned: frozenset[str] = frozenset(),
) -> tuple[ReadTask, ...]:
    tasks = []
    for descriptor, slices in parts:
        for piece in slices:
            if piece.base is not None and not piece.base.name.endswith(".parquet"):
                refuse_unknown_format(piece.base.path)
            tasks.append(ReadTask(piece, descriptor, whole=descriptor.path in returned))
    return tuple(tasks)


def _seen_until(state: TableState, end: str | None) -> SeenInstants:
    bound = None if end is None else whole_second(end)
    if state.config.layout == 1:
        return SeenInstants.of(state.timeline, as_of=bound)
    timeline = state.timeline if bound is None else timeline_from(state, bound)
    return SeenInstants.of(timeline, upto=bound)


def _refuse_bootstrapped(state: TableState) -> None:
    source = state.config.properties.get(BOOTSTRAP)
    if source:
        raise Unsupported(
            f"the table was bootstrapped from {source}: its base files may hold Hudi's own columns "
            "alone.",
            next_step="Rewrite it with Hudi (clustering does), and remove "
            f"{BOOTSTRAP} from its properties.",
            source=source,
        )


def _require_commit_times(state: TableState) -> None:
    if not state.config.populate_meta_fields:
        raise Unsupported(
            "the table does not keep the commit time of its rows (hoodie.populate.meta.fields is "
            "false), so the rows of a window cannot be told.",
            next_step="Use changes(start, end), which compares file slices.",
        )


def _bound(where: Expression | str | None, schema: Struct) -> BoundExpression | None:
    if where is None:
        return None
    return bind(parse_expression(where) if isinstance(where, str) else where, schema)


def readable_columns(state: TableState, table: Struct) -> Struct:
    """Return all columns that can be named: Hudi's own, where the table fills them, and its own."""
    meta = META_FIELDS if state.config.populate_meta_fields else ()
    return Struct((*meta, *table.fields))


def _output(request: ScanRequest, table: Struct, whole: Struct) -> Struct:
    names = ("*",) if request.columns is None else request.columns
    if request.meta:
        meta = tuple(name for name in META_COLUMNS if name in whole)
        names = (*meta, *(n for n in names if n not in meta))
    return whole.select(_spread(names, table, whole)).nullable()


def _spread(names: Sequence[str], own: Struct, whole: Struct) -> tuple[str, ...]:
    spread: list[str] = []
    for name in names:
        spread.extend(own.names if name == "*" else (_spelt(name, whole),))
    return tuple(dict.fromkeys(spread))


def _spelt(name: str, whole: Struct) -> str:
    """Return a name as the table spells it; case matters only in doubt, as in conditions."""
    alike = [known for known in whole.names if known.lower() == name.lower()]
    return alike[0] if name not in whole and len(alike) == 1 else name


def _check(request: ScanRequest) -> None:
    windowed = request.mode in _WINDOWED
    if windowed and request.as_of is not None:
        raise Invalid(
            "a window cannot be read as of an instant.", next_step="Bound it with start and end."
        )
    if not windowed and (request.start is not None or request.end is not None):
        raise Invalid(
            f"mode {request.mode} has no start and end.",
            next_step="Use incremental(start, end) or changes(start, end).",
        )
    if request.mode is ReadingMode.CDC and request.meta:
        raise Invalid("a change stream has no meta columns.", next_step="Leave meta=True out.")
