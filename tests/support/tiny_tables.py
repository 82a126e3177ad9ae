"""Tables of a few files, written by hand: a timeline and file names, contents only on demand."""

import io
from collections.abc import Mapping, Sequence
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.format.hudi.metadata.clean import CleanMetadata, encode_clean
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat, encode_commit
from lakewright.format.hudi.partition_metadata import PartitionMetadata, encode_partition_metadata
from lakewright.format.hudi.properties import render_properties, table_checksum
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from lakewright.table.state import TableState, open_state

SCHEMA = (
    '{"type":"record","name":"t","fields":[{"name":"id","type":["null","string"]},'
    '{"name":"n","type":["null","long"]},{"name":"dt","type":["null","string"]},'
    '{"name":"hour","type":["null","int"]}]}'
)
_NUMBERS = count()


def at(minute: int) -> str:
    """Return an instant time."""
    return f"2026111500{minute:02d}00000"


def base_name(group: str, minute: int, token: str = "0-1-1") -> str:
    """Return the name of a base file."""
    return f"{group}_{token}_{at(minute)}.parquet"


def log_name(group: str, minute: int, version: int = 1) -> str:
    """Return the name of a log file."""
    return f".{group}_{at(minute)}.log.{version}_0-1-1"


def parquet_bytes(ids: Sequence[str], numbers: Sequence[int | None], commit: str = at(1)) -> bytes:
    """Return a small base file with statistics."""
    table = pa.table(
        {
            "_hoodie_commit_time": [commit] * len(ids),
            "_hoodie_commit_seqno": [f"{commit}_0_{i}" for i in range(len(ids))],
            "_hoodie_record_key": pa.array(ids, pa.string()),
            "_hoodie_partition_path": [""] * len(ids),
            "_hoodie_file_name": ["f"] * len(ids),
            "id": pa.array(ids, pa.string()),
            "n": pa.array(numbers, pa.int64()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


class TinyTable:
    """A table under construction; every verb returns the table, so that they chain."""

    def __init__(
        self,
        version: int = 9,
        *,
        partition_by: str = "dt",
        mor: bool = False,
        storage: Storage | None = None,
        **properties: str,
    ) -> None:
        self.layout = 1 if version == 6 else 2
        self.mor = mor
        self.storage = storage or MemoryStorage(f"memory://tiny-{next(_NUMBERS)}/t", {})
        values = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
            "hoodie.table.version": str(version),
            "hoodie.timeline.layout.version": str(self.layout),
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": partition_by,
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            **{key.replace("__", "."): value for key, value in properties.items()},
        }
        values["hoodie.table.checksum"] = str(table_checksum(values))
        self.storage.write(".hoodie/hoodie.properties", render_properties(values))

    @property
    def timeline(self) -> str:
        return ".hoodie" if self.layout == 1 else ".hoodie/timeline"

    def commit(
        self,
        requested: int,
        files: Mapping[str, Mapping[str, bytes]] | None = None,
        *,
        completed: int | None = None,
        action: str | None = None,
        replaced: Mapping[str, Sequence[str]] | None = None,
        operation: str = "UPSERT",
        schema: str | None = SCHEMA,
        extra: Mapping[str, str] | None = None,
    ) -> "TinyTable":
        """Write files (by partition, then name) and the commit that names them."""
        for partition, named in (files or {}).items():
            for name, data in named.items():
                self.touch(f"{partition}/{name}" if partition else name, data)
            self._partition(partition, at(requested))
        metadata = CommitMetadata(
            write_stats={p: _stats(p, named) for p, named in (files or {}).items()},
            operation=operation,
            extra={**(extra or {}), **({"schema": schema} if schema else {})},
            replaced={p: tuple(ids) for p, ids in (replaced or {}).items()},
        )
        kind = action or ("replacecommit" if replaced else "deltacommit" if self.mor else "commit")
        body = encode_commit(metadata, self.layout, replace=kind == "replacecommit")
        return self.instant(requested, completed, kind, body)

    def instant(
        self, requested: int, completed: int | None, action: str, body: bytes
    ) -> "TinyTable":
        """Write the requested, inflight and completed files of an action."""
        stem = at(requested)
        inflight = f"{stem}.inflight" if action == "commit" else f"{stem}.{action}.inflight"
        done = completed if completed is not None else requested
        if self.layout == 2:
            stem = f"{stem}_{at(done)[:-1]}9"
        for name, data in {
            f"{at(requested)}.{action}.requested": b"",
            inflight: b"",
            f"{stem}.{action}": body,
        }.items():
            self.storage.write(f"{self.timeline}/{name}", data)
        return self

    def cleaned(self, requested: int, earliest: int) -> "TinyTable":
        """Write a cleaning that kept ``earliest`` and later."""
        body = encode_clean(CleanMetadata(at(requested), 1, 0, at(earliest), at(requested - 1)))
        return self.instant(requested, None, "clean", body)

    def touch(self, path: str, data: bytes = b"") -> "TinyTable":
        """Write any file."""
        self.storage.write(path, data)
        return self

    def state(self) -> TableState:
        """Open the table."""
        return open_state(self.storage)

    def _partition(self, partition: str, instant: str) -> None:
        path = f"{partition}/.hoodie_partition_metadata".removeprefix("/")
        self.storage.create(
            path, encode_partition_metadata(PartitionMetadata.of(partition, instant))
        )


def completion(minute: int) -> str:
    """Return the completion time that ``commit`` gives by default in layout 2."""
    return f"{at(minute)[:-1]}9"


def _stats(partition: str, named: Mapping[str, bytes]) -> tuple[WriteStat, ...]:
    return tuple(
        WriteStat(
            file_id=name.removeprefix(".").partition("_")[0],
            path=f"{partition}/{name}".removeprefix("/"),
            prev_commit="null",
            partition_path=partition,
            total_write_bytes=len(data),
            file_size_in_bytes=len(data),
        )
        for name, data in named.items()
    )
