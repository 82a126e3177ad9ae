"""Where the schema of a table is found, and what readers see of it."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.format.hudi.internal_schema import numbered, render_internal_schema
from lakewright.format.hudi.metadata.commit import CommitMetadata, encode_commit
from lakewright.model.errors import Invalid, TableNotFound
from lakewright.model.schema import INT, LONG, META_FIELDS, STRING, Field, Struct
from lakewright.model.table import MergeMode, TableType
from lakewright.storage.memory import MemoryStorage
from lakewright.table.schemas import LATEST_SCHEMA
from lakewright.table.state import open_state, table_def, table_schema
from support.tiny_tables import SCHEMA, TinyTable, at, base_name, parquet_bytes


def avro(*names: str) -> str:
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "t", "fields": fields})


def test_the_newest_write_decides_and_time_travel_takes_the_one_before() -> None:
    table = TinyTable().commit(1, schema=avro("a")).commit(3, schema=avro("a", "b"))
    state = table.state()
    assert table_schema(state).names == ("a", "b")
    assert table_schema(state, at(2)).names == ("a",)
    assert table_schema(state, at(0)).names == ("a", "b"), "no rows yet, but columns"


def test_maintenance_is_asked_last_and_cleanings_not_at_all() -> None:
    table = TinyTable().commit(1, schema=avro("a", "b"))
    table.commit(2, schema=avro("a"), operation="COMPACT").cleaned(3, earliest=1)
    table.commit(4, schema=avro("a"), operation="CLUSTER", action="replacecommit")
    assert table_schema(table.state()).names == ("a", "b")
    only = TinyTable().commit(1, schema=None).commit(2, schema=avro("a"), operation="COMPACT")
    assert table_schema(only.state()).names == ("a",)


def test_meta_columns_are_left_out() -> None:
    names = [field.name for field in META_FIELDS]
    table = TinyTable().commit(1, schema=avro(*names, "_hoodie_operation", "a"))
    assert table_schema(table.state()).names == ("a",)


def test_without_a_schema_in_commits_a_base_file_is_asked() -> None:
    files = {"dt=a": {base_name("g", 1): parquet_bytes(["k"], [1])}}
    table = TinyTable().commit(1, files, schema=None)
    assert table_schema(table.state()).names == ("id", "n")
    # The commit's own file is gone; an older one stands in for it.
    table.storage.delete([f"dt=a/{base_name('g', 1)}"])
    table.touch(f"dt=b/{base_name('h', 0)}", parquet_bytes(["k"], [1]))
    assert table_schema(table.state()).names == ("id", "n")


def test_the_footer_s_own_avro_schema_is_preferred() -> None:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, pa.schema([("a", pa.int64())])) as writer:
        writer.write_table(pa.table({"a": [1]}))
        writer.add_key_value_metadata({"parquet.avro.schema": avro("a", "added")})
    table = TinyTable().commit(1, {"dt=a": {base_name("g", 1): sink.getvalue()}}, schema=None)
    assert table_schema(table.state()).names == ("a", "added")


def test_a_table_without_writes_has_the_schema_it_was_created_with() -> None:
    table = TinyTable(hoodie__table__create__schema=SCHEMA)
    assert table_schema(table.state()).names == ("id", "n", "dt", "hour")
    with pytest.raises(Invalid, match="no schema yet"):
        table_schema(TinyTable().state())


def test_formatted_times_are_text_to_readers() -> None:
    table = TinyTable(partition_by="n", hoodie__table__keygenerator__type="TIMESTAMP")
    schema = table_schema(table.commit(1).state())
    assert schema.field("n").type == STRING
    assert schema.field("hour").type == INT


def test_partition_columns_that_files_lack_are_added_as_text() -> None:
    drop = {"hoodie__datasource__write__drop__partition__columns": "true"}
    table = TinyTable(partition_by="dt,region", **drop).commit(1)
    assert table_schema(table.state()).fields[-1] == Field("region", STRING)


def test_a_schema_with_field_ids_goes_before_the_plain_one() -> None:
    stored = numbered(Struct((Field("a", LONG), Field("renamed", LONG))), 1)
    metadata = CommitMetadata(
        operation="ALTER_SCHEMA",
        extra={"schema": avro("a", "old"), LATEST_SCHEMA: render_internal_schema(stored)},
    )
    table = TinyTable().instant(1, None, "commit", encode_commit(metadata, 2, replace=False))
    schema = table_schema(table.state())
    assert schema.names == ("a", "renamed")
    assert all(field.id is not None for field in schema)


def test_a_definition_says_what_the_table_is() -> None:
    table = TinyTable(mor=True, hoodie__table__ordering__fields="n").commit(1)
    made = table_def(table.state())
    assert (str(made.table_id), made.table_type, made.version) == (
        "t",
        TableType.MERGE_ON_READ,
        9,
    )
    assert made.record_key == ("id",)
    assert made.partition_by == ("dt",)
    assert made.ordering == ("n",)
    assert made.merge_mode is MergeMode.EVENT_TIME_ORDERING
    assert made.base_path == table.storage.uri


def test_a_folder_without_a_table_is_named() -> None:
    with pytest.raises(TableNotFound):
        open_state(MemoryStorage("memory://nothing-here/t", {}))


def test_a_refreshed_state_sees_later_writes_and_the_old_one_does_not() -> None:
    table = TinyTable().commit(1)
    state = table.state()
    table.commit(2)
    assert len(state.timeline.completed()) == 1
    assert len(state.refresh().timeline.completed()) == 2
