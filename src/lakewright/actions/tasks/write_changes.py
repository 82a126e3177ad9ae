"""The change file of a file group that is written anew: each change as a record beside the rows.

Every rewritten group of a table that keeps changes has one, empty where no row changed: without
it real Hudi refuses to tell the changes of the commit.
"""

from contextlib import ExitStack
from functools import lru_cache
from types import TracebackType
from typing import IO

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_files import in_partition, new_file, record_schema
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.change_records import (
    AFTER,
    BEFORE,
    CDC_MODE,
    KEY,
    OP,
    TIME,
    ChangeMode,
    change_schema_text,
)
from lakewright.format.hudi.file_names import log_file_name
from lakewright.format.hudi.log.write import cdc_block, data_header
from lakewright.model.schema import RECORD_KEY, Struct
from lakewright.table.changes.images import DELETE, INSERT, UPDATE, image
from lakewright.timeline.markers import MarkerKind

#: Images that make one block, in bytes of memory; their encoded form takes some times that.
_BLOCK_BYTES = 8 << 20


class ChangeLog:
    """Writes the change file of one group as the changes come by; a context manager.

    Rows are given with their key in ``_hoodie_record_key``. Changes that one call tells are
    written before those of the next.
    """

    def __init__(self, spec: WriteSpec, work: GroupWork, attempt: Attempt) -> None:
        partition = work.group.partition
        name = log_file_name(work.group.file_id, spec.instant, 1, attempt.token, cdc=True)
        self._spec = spec
        self._partition = partition
        self._path = in_partition(partition, name)
        self._mode = CDC_MODE.read(spec.config.properties)
        text, self._schema = _schemas(self._mode, spec.schema, spec.config.name)
        self._header = data_header(spec.instant, text)
        self._open = ExitStack()
        self._sink: IO[bytes] | None = None
        self._waiting: list[pa.Table] = []
        self._bytes = 0
        self._size = 0

    def __enter__(self) -> "ChangeLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A file that an error cut off is given up by its writer, and its marker names it.
        self._open.__exit__(kind, error, trace)

    def deleted(self, before: pa.Table) -> None:
        """Tell of rows that are gone."""
        self._put(DELETE, before, before, None)

    def updated(self, before: pa.Table, after: pa.Table) -> None:
        """Tell of rows that others took the place of, pair by pair."""
        self._put(UPDATE, after, before, after)

    def inserted(self, after: pa.Table) -> None:
        """Tell of rows that are new."""
        self._put(INSERT, after, None, after)

    def finish(self) -> dict[str, int]:
        """Write what waits and close the file; return its size by its path."""
        if self._waiting or self._sink is None:
            self._flush()
        self._open.close()
        return {self._path: self._size}

    def _put(
        self, op: str, keyed: pa.Table, before: pa.Table | None, after: pa.Table | None
    ) -> None:
        count = keyed.num_rows
        if not count:
            return
        per_row = sum(t.nbytes for t in self._kept(before, after)) // count
        step = max(1, _BLOCK_BYTES // max(per_row, 1))
        for start in range(0, count, step):
            parts = [None if t is None else t.slice(start, step) for t in (before, after)]
            made = self._records(op, keyed.slice(start, step), *parts)
            self._waiting.append(made)
            self._bytes += per_row * made.num_rows
            if self._bytes >= _BLOCK_BYTES:
                self._flush()

    def _kept(self, before: pa.Table | None, after: pa.Table | None) -> list[pa.Table]:
        """Return the images that the file holds."""
        sides = {
            ChangeMode.OP_KEY_ONLY: (),
            ChangeMode.DATA_BEFORE: (before,),
            ChangeMode.DATA_BEFORE_AFTER: (before, after),
        }
        return [side for side in sides[self._mode] if side is not None]

    def _records(
        self, op: str, keyed: pa.Table, before: pa.Table | None, after: pa.Table | None
    ) -> pa.Table:
        count = keyed.num_rows
        plain = {
            OP: pa.repeat(op, count),
            TIME: pa.repeat(self._spec.instant, count),
            KEY: keyed.column(RECORD_KEY).combine_chunks(),
        }
        sides = {BEFORE: before, AFTER: after}
        columns = [
            plain[f.name] if f.name in plain else _image(sides[f.name], f.type, count)
            for f in self._schema
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _flush(self) -> None:
        if self._sink is None:
            # As of a log, which it is by its name: Hudi takes writes back by that.
            kind = MarkerKind.CREATE if self._spec.config.layout == 2 else MarkerKind.APPEND
            self._sink = self._open.enter_context(
                new_file(self._spec, self._path, self._partition, kind, partition_known=True)
            )
        waiting = self._waiting or [self._schema.empty_table()]
        block = cdc_block(pa.concat_tables(waiting), self._header)
        self._sink.write(block)
        self._size += len(block)
        self._waiting, self._bytes = [], 0


@lru_cache(maxsize=64)
def _schemas(mode: ChangeMode, schema: Struct, table: str) -> tuple[str, pa.Schema]:
    """Return the schema of the change records of a table, as Avro text and as Arrow has it."""
    text = change_schema_text(mode, record_schema(schema, table, meta=False))
    return text, to_arrow_schema(parse_avro_schema(text))


def _image(rows: pa.Table | None, kind: pa.StructType, count: int) -> pa.StructArray:
    own = None if rows is None else conform(rows.select([f.name for f in kind]), pa.schema(kind))
    return image(own, kind, count)
