"""Writes made of the tasks alone: planned, written and committed by hand, for tests of tasks."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lakewright.actions.create import create_table, plan_create
from lakewright.actions.executor import Attempt
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.actions.tasks.write import plan_groups, write_group, write_stream
from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.tasks.write_spec import FileWritten, KeysToDelete, WriteSpec
from lakewright.engine.local.scan import scan_batches
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat, encode_commit
from lakewright.index.layout import layout_of
from lakewright.model.schema import LONG, STRING, Field, Struct
from lakewright.model.table import MergeMode, TableDescriptor, TableId, TableType
from lakewright.model.writing import Operation
from lakewright.storage.port import Storage
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import TableState, open_state, table_schema
from lakewright.timeline.markers import Markers

SCHEMA = Struct((Field("id", STRING), Field("ts", LONG), Field("v", STRING), Field("dt", STRING)))


@dataclass
class TaskTable:
    """A table that is written by task functions, one hand-made commit per call.

    With ``model`` it has the properties of that table, and none of its rows.
    """

    storage: Storage
    kind: TableType = TableType.COPY_ON_WRITE
    version: int = 9
    buckets: int | None = None
    index: str = "SIMPLE"
    key: tuple[str, ...] = ("id",)
    partition_by: tuple[str, ...] = ("dt",)
    ordering: tuple[str, ...] = ("ts",)
    schema: Struct = SCHEMA
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    clock: int = 0
    written: tuple[FileWritten, ...] = ()
    model: TableState | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            path = ".hoodie/hoodie.properties"
            self.storage.write(path, self.model.storage.read(path))
            self.kind, self.schema = self.model.config.table_type, table_schema(self.model)
            return
        mode = MergeMode.EVENT_TIME_ORDERING if self.ordering else MergeMode.COMMIT_TIME_ORDERING
        stored = dict(self.properties)
        if self.buckets:
            stored |= {
                "hoodie.index.type": "BUCKET",
                "hoodie.bucket.index.num.buckets": str(self.buckets),
            }
        else:
            stored["hoodie.index.type"] = self.index
        descriptor = TableDescriptor(
            TableId("", "t"),
            self.schema,
            self.key,
            self.kind,
            None,
            self.partition_by,
            self.ordering,
            stored,
        )
        create_table(self.storage, plan_create(descriptor, version=self.version, merge_mode=mode))

    @property
    def state(self) -> TableState:
        return open_state(self.storage)

    def spec(self, operation: Operation, schema: Struct | None = None, **more: Any) -> WriteSpec:
        """Pin the table and take the next instant."""
        self.clock += 1
        state = self.state
        config = state.config
        return WriteSpec(
            uri=self.storage.uri,
            options=self.storage.options,
            config=config,
            schema=schema or self.schema,
            instant=self.instant,
            operation=operation,
            layout=layout_of(state, {}),
            settings=WriteSettings.of(self.options),
            pinned=PinnedTable(state),
            storage=self.storage,
            **more,
        )

    @property
    def instant(self) -> str:
        moment = dt.datetime(2026, 11, 15) + dt.timedelta(minutes=self.clock)
        return f"{moment:%Y%m%d%H%M%S}000"

    def write(
        self,
        operation: Operation,
        rows: pa.Table | Sequence[Mapping[str, object]] | None = None,
        deletes: Iterable[tuple[str, str]] = (),
        *,
        stream: bool = False,
        schema: Struct | None = None,
        commit: bool = True,
        **more: Any,
    ) -> tuple[FileWritten, ...]:
        """Write rows, or delete (partition, key) pairs, and commit."""
        spec = self.spec(operation, schema, **more)
        table = rows if rows is None or isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
        gone = list(deletes)
        keys = KeysToDelete(
            pa.array([k for _, k in gone], pa.string()),
            pa.array([p for p, _ in gone], pa.string()),
        )
        attempt = Attempt(0, self.clock, self.clock)
        if stream:
            assert table is not None
            made = tuple(write_stream(spec, table.to_batches(max_chunksize=7), attempt))
        else:
            works = plan_groups(spec, table, keys if gone else None)
            made = tuple(f for work in works for f in write_group(spec, work, attempt))
        if commit:
            self.commit(spec, made)
        self.written = made
        return made

    def commit(
        self,
        spec: WriteSpec,
        made: Sequence[FileWritten],
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Publish files by hand."""
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for file in made:
            stats[file.partition] = (*stats.get(file.partition, ()), file.stat)
        text = to_avro_schema(spec.schema, "t_record", "hoodie.t")
        metadata = CommitMetadata(
            write_stats=stats, extra={"schema": text}, operation=spec.operation.value
        )
        if replaced:
            metadata = replace(metadata, replaced=replaced)
        action = "commit" if self.kind is TableType.COPY_ON_WRITE else "deltacommit"
        action = "replacecommit" if replaced else action
        layout = spec.config.layout
        done = spec.instant[:-3] + "500"
        stem = spec.instant if layout == 1 else f"{spec.instant}_{done}"
        body = encode_commit(metadata, layout, replace=bool(replaced))
        inflight = "inflight" if action == "commit" else f"{action}.inflight"
        folder = spec.config.timeline_folder
        self.storage.write(f"{folder}/{spec.instant}.{action}.requested", b"")
        self.storage.write(f"{folder}/{spec.instant}.{inflight}", b"")
        self.storage.write(f"{folder}/{stem}.{action}", body)
        named = {marker.path for marker in Markers(self.storage, spec.instant).names()}
        assert named == {file.stat.path for file in made}
        Markers(self.storage, spec.instant).clear()

    def rows(self, *columns: str, meta: bool = False) -> list[dict[str, Any]]:
        """Return the rows that our reader sees."""
        request = ScanRequest(columns=columns or None, meta=meta)
        found = scan_batches(plan_scan(self.state, request))
        return sorted((r for b in found for r in b.to_pylist()), key=repr)

    def by_key(self, value: str = "v") -> dict[tuple[str, str], Any]:
        """Return one column by partition and key; a key that is there twice fails."""
        found: dict[tuple[str, str], Any] = {}
        for row in self.rows("dt", "id", value):
            assert (row["dt"], row["id"]) not in found, row
            found[row["dt"], row["id"]] = row[value]
        return found


def rows_of(*rows: tuple[str, int, str, str]) -> pa.Table:
    """Return rows of ``SCHEMA``: id, ts, v, dt."""
    columns: list[Sequence[object]] = list(zip(*rows, strict=True)) or [[], [], [], []]
    types = (pa.string(), pa.int64(), pa.string(), pa.string())
    return pa.table(
        [pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["id", "ts", "v", "dt"]
    )


def schema_of(table: pa.Table) -> Struct:
    """Return the table schema of Arrow rows."""
    return from_arrow_schema(table.schema)


def hudi_rows(path: str) -> list[dict[str, Any]]:
    """Return the rows that the hudi package reads."""
    import hudi

    batches = hudi.HudiTableBuilder.from_base_uri(path).build().read()
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
