"""Creating tables: what is written, and what is refused before anything is."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.create import create_table, plan_create
from lakewright.format.hudi.config import KeyGenerator
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import Invalid, InvalidOption
from lakewright.model.table import TableDescriptor, TableId
from lakewright.storage.memory import MemoryStorage
from lakewright.table.state import open_state

SCHEMA = (
    "id string, k bigint, ts bigint, at timestamp, dt string, day date, bin binary, s struct<x:int>"
)
MILLIS = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}


def made(place: Path, **details: Any) -> dict[str, str]:
    given = {"schema": SCHEMA, "key": "id", **details}
    return dict(lw.create_table(place / "t", **given).definition.properties)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({}, {"keygenerator.type": "NON_PARTITION", "recordkey.fields": "id"}),
        ({"key": ["id", "k"]}, {"keygenerator.type": "NON_PARTITION", "recordkey.fields": "id,k"}),
        ({"partition_by": "dt"}, {"keygenerator.type": "SIMPLE", "partition.fields": "dt"}),
        ({"partition_by": ["dt", "s.x"]}, {"keygenerator.type": "COMPLEX"}),
        ({"key": ["id", "s.x"], "partition_by": "dt"}, {"recordkey.fields": "id,s.x"}),
        (
            {"partition_by": ["dt", "ts:timestamp"], "properties": MILLIS},
            {"keygenerator.type": "CUSTOM", "partition.fields": "dt:SIMPLE,ts:TIMESTAMP"},
        ),
        (
            {"partition_by": "ts", "key_generator": "timestamp", "properties": MILLIS},
            {"keygenerator.type": "TIMESTAMP", "partition.fields": "ts"},
        ),
        ({"order_by": ["ts", "k"]}, {"ordering.fields": "ts,k"}),
        ({"type": "merge_on_read"}, {"type": "MERGE_ON_READ"}),
        (
            {"partition_by": ["dt", "k"], "version": 6},
            {"keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"},
        ),
        ({"order_by": "ts", "version": 6}, {"precombine.field": "ts"}),
    ],
)
def test_keys_partitions_and_ordering(
    tmp_path: Path, details: dict[str, Any], expected: dict[str, str]
) -> None:
    properties = made(tmp_path, **details)
    assert {k: properties[f"hoodie.table.{k}"] for k in expected} == expected


def test_generated_keys_leave_no_key_fields(tmp_path: Path) -> None:
    properties = made(tmp_path, key=None, partition_by="dt")
    assert "hoodie.table.recordkey.fields" not in properties


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({}, {"type": "SIMPLE"}),
        ({"index": "global_bloom"}, {"type": "GLOBAL_BLOOM"}),
        ({"buckets": 4}, {"type": "BUCKET", "num.buckets": "4", "hash.field": "id"}),
        (
            {"key": ["id", "k"], "buckets": 4, "hash_by": "k"},
            {"num.buckets": "4", "hash.field": "k"},
        ),
        (
            {
                "properties": {
                    "hoodie.index.type": "bucket",
                    "hoodie.bucket.index.num.buckets": "3",
                }
            },
            {"type": "BUCKET", "num.buckets": "3", "hash.field": "id"},
        ),
    ],
)
def test_the_index_is_stored(
    tmp_path: Path, details: dict[str, Any], expected: dict[str, str]
) -> None:
    properties = made(tmp_path, **details)
    found = {
        k.removeprefix("hoodie.").replace("bucket.index.", ""): v for k, v in properties.items()
    }
    assert {k: found[k if k != "type" else "index.type"] for k in expected} == expected


def test_settings_may_come_under_their_names_in_hudi(tmp_path: Path) -> None:
    settings = {
        "hoodie.datasource.write.hive_style_partitioning": "FALSE",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.record.merge.mode": "event_time_ordering",
        "hoodie.table.keygenerator.type": "COMPLEX",
        "hoodie.parquet.max.file.size": "1000000",
    }
    config = open_state(
        lw.create_table(
            tmp_path / "t",
            schema=SCHEMA,
            key="id",
            partition_by="dt",
            order_by="ts",
            properties=settings,
        )._storage
    ).config
    assert config.url_encode and not config.hive_style
    assert config.key_generator is KeyGenerator.COMPLEX
    assert config.properties["hoodie.parquet.max.file.size"] == "1000000"


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ({"key": "nope"}, ["'nope'", "Known: id"]),
        ({"key": ["id", "id"]}, ["twice"]),
        ({"key": "s"}, ["'s'", "struct"]),
        ({"key": "s.y"}, ["s.y"]),
        ({"key": "at"}, ["'at'", "timestamp"]),
        ({"key": "bin"}, ["'bin'", "binary"]),
        ({"partition_by": "bin"}, ["'bin'", "binary"]),
        ({"key": [""]}, ["key"]),
        ({"key": []}, ["key=[]", "key=None"]),
        ({"partition_by": "at"}, ["'at:TIMESTAMP'"]),
        ({"partition_by": "dt:HOUR"}, ["SIMPLE, TIMESTAMP"]),
        ({"partition_by": "ts:TIMESTAMP"}, ["hoodie.keygen.timebased.timestamp.type"]),
        (
            {"partition_by": "ts:TIMESTAMP", "properties": {**MILLIS, next(iter(MILLIS)): "DAYS"}},
            ["'DAYS'", "EPOCHMILLISECONDS"],
        ),
        (
            {"partition_by": "ts:TIMESTAMP", "properties": {next(iter(MILLIS)): "UNIX_TIMESTAMP"}},
            ["output.dateformat"],
        ),
        (
            {
                "partition_by": "ts:TIMESTAMP",
                "properties": {**MILLIS, "hoodie.keygen.timebased.output.dateformat": "EEE"},
            },
            ["EEE"],
        ),
        (
            {
                "partition_by": "ts:TIMESTAMP",
                "properties": {**MILLIS, "hoodie.keygen.timebased.timezone": "Nowhere"},
            },
            ["Nowhere"],
        ),
        (
            {
                "partition_by": "ts:TIMESTAMP",
                "properties": {**MILLIS, "hoodie.keygen.timebased.zone": "UTC"},
            },
            ["hoodie.keygen.timebased.zone", "Known"],
        ),
        (
            {
                "partition_by": "dt:TIMESTAMP",
                "properties": {**MILLIS, next(iter(MILLIS)): "DATE_STRING"},
            },
            ["input.dateformat"],
        ),
        ({"partition_by": "at:TIMESTAMP", "properties": MILLIS}, ["'at'", "EPOCHMICROSECONDS"]),
        ({"partition_by": "day:TIMESTAMP", "properties": MILLIS}, ["'day'", "SCALAR", "DAYS"]),
        ({"partition_by": "dt", "properties": MILLIS}, ["TIMESTAMP"]),
        ({"partition_by": "dt", "key_generator": "NON_PARTITION"}, ["no partition columns"]),
        ({"key_generator": "SIMPLE"}, ["one partition column"]),
        ({"key_generator": "GLOBAL_DELETE"}, ["not for new tables"]),
        ({"key_generator": "x"}, ["Allowed", "COMPLEX"]),
        ({"partition_by": "dt:SIMPLE", "key_generator": "SIMPLE"}, ["CUSTOM"]),
        ({"order_by": "nope"}, ["'nope'"]),
        ({"schema": "id string, b binary", "order_by": "b"}, ["'b'", "binary", "compare"]),
        ({"order_by": ["ts", "k"], "version": 6}, ["version 6"]),
        ({"version": 8}, ["8", "6, 9"]),
        ({"merge_mode": "CUSTOM"}, ["COMMIT_TIME_ORDERING"]),
        ({"merge_mode": "EVENT_TIME_ORDERING"}, ["order_by"]),
        ({"merge_mode": "COMMIT_TIME_ORDERING", "order_by": "ts"}, ["order_by"]),
        ({"type": "cow"}, ["'cow'", "COPY_ON_WRITE"]),
        ({"index": "BUCKET"}, ["buckets=N"]),
        ({"index": "BLOOM", "buckets": 4}, ["BLOOM"]),
        ({"buckets": 0}, ["'0'", "from 1"]),
        ({"buckets": 4, "hash_by": "dt"}, ["dt", "some of id"]),
        ({"key": ["id", "k"], "buckets": 4, "hash_by": ["k", "k"]}, ["twice"]),
        ({"key": None, "buckets": 4}, ["generated"]),
        ({"schema": "id string, ID string"}, ["'id'", "'ID'"]),
        ({"schema": "id string, `a b` string"}, ["a b"]),
        ({"schema": "id string, m map<int,int>"}, ["string keys"]),
        ({"schema": "id string, _hoodie_record_key string"}, ["_hoodie_record_key"]),
        ({"schema": pa.schema([])}, ["no columns"]),
        ({"schema": 3}, ["int", "Arrow"]),
        ({"properties": {"hoodie.table.version": "8"}}, ["hoodie.table.version=8", "9"]),
        ({"properties": {"hoodie.table.name": "other"}}, ["hoodie.table.name"]),
        ({"properties": {"hoodie.table.checksum": "1"}}, ["checksum"]),
        ({"properties": {"hoodie.table.cdc.enabled": "perhaps"}}, ["cdc", "perhaps"]),
        ({"properties": {"hoodie.table.metadata.partitions": "files"}}, ["metadata"]),
        ({"properties": {"hoodie.parquet.max.file.size": "x"}}, ["max.file.size", "'x'"]),
        ({"properties": {"hoodie.index.type": "x"}}, ["hoodie.index.type", "BUCKET"]),
        ({"properties": {"hoodie.datasource.write.hive_style_partitioning": "x"}}, ["true or"]),
        ({"properties": {"primaryKey": "id"}}, ["primaryKey", "hoodie."]),
        ({"properties": {"hoodie.a": 1}}, ["hoodie.a", "text"]),
        ({"frob": 1}, ["frob", "partition_by"]),
    ],
)
def test_refusals_come_before_anything_is_written(
    tmp_path: Path, details: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(lw.LakewrightError) as refusal:
        made(tmp_path, **details)
    for word in words:
        assert word in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_folders_with_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t" / "dt=1").mkdir(parents=True)
    made(tmp_path)  # empty folders are no hindrance
    (tmp_path / "u" / "dt=1").mkdir(parents=True)
    (tmp_path / "u" / "dt=1" / "x.parquet").write_bytes(b"")
    with pytest.raises(lw.Invalid, match=r"x\.parquet"):
        lw.create_table(tmp_path / "u", schema=SCHEMA, key="id")
    assert not (tmp_path / "u" / ".hoodie").exists()


def test_one_of_many_creators_wins() -> None:
    storage = MemoryStorage("memory://creators/t", {})
    schema = parse_ddl(SCHEMA)
    plan = plan_create(TableDescriptor(TableId("", "t"), schema, ("id",)))
    won: list[bool] = []
    start = threading.Barrier(8)

    def create() -> None:
        start.wait()
        try:
            create_table(storage, plan)
            won.append(True)
        except lw.AlreadyExists:
            won.append(False)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]
    assert open_state(storage).config.name == "t"


def test_names_that_avro_does_not_know_are_no_names_of_records(tmp_path: Path) -> None:
    made_table = lw.create_table(tmp_path / "my-table.2", schema=SCHEMA, key="id")
    text = made_table.definition.properties["hoodie.table.create.schema"]
    assert '"name":"my_table_2_record"' in text
    assert '"namespace":"hoodie.my_table_2"' in text


@pytest.mark.parametrize(
    ("key", "value", "argument"),
    [
        ("hoodie.index.type", "GLOBAL_SIMPLE", "the argument index"),
        ("hoodie.table.type", "MERGE_ON_READ", "the argument type"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "the argument type"),
        ("hoodie.table.recordkey.fields", "ts", "the argument key"),
        ("hoodie.datasource.write.recordkey.field", "ts", "the argument key"),
        ("hoodie.table.partition.fields", "ts", "the argument partition_by"),
        ("hoodie.datasource.write.partitionpath.field", "ts", "the argument partition_by"),
        ("hoodie.table.ordering.fields", "ts", "the argument order_by"),
        ("hoodie.table.precombine.field", "ts", "the argument order_by"),
        ("hoodie.datasource.write.precombine.field", "ts", "the argument order_by"),
        ("hoodie.record.merge.mode", "EVENT_TIME_ORDERING", "the argument merge_mode"),
        ("hoodie.write.record.merge.mode", "EVENT_TIME_ORDERING", "the argument merge_mode"),
        ("hoodie.table.version", "6", "the argument version"),
        ("hoodie.write.table.version", "6", "the argument version"),
        ("hoodie.bucket.index.num.buckets", "4", "the argument buckets"),
        ("hoodie.bucket.index.partition.expressions", "dt=.*,4", "the argument buckets"),
        ("hoodie.bucket.index.hash.field", "id", "the argument hash_by"),
        ("hoodie.datasource.write.hive_style_partitioning", "false", "the argument hive_style"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true", "the argument url_encode"),
        ("hoodie.table.keygenerator.type", "COMPLEX", "the argument key_generator"),
        ("hoodie.datasource.write.keygenerator.class", "x.Y", "the argument key_generator"),
        ("hoodie.table.cdc.enabled", "true", "it in properties="),
        ("hoodie.partition.ttl.policies", "[]", "it in properties="),
        ("hoodie.keygen.timebased.timezone", "UTC", "it in properties="),
    ],
)
def test_options_choose_nothing_and_are_not_ignored(
    key: str, value: str, argument: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"schema": SCHEMA, "key": "id", "partition_by": "dt"}
    with pytest.raises(InvalidOption, match=f"give {argument} to create_table"):
        lw.create_table(tmp_path / "t", options={key: value}, **given)
    assert not (tmp_path / "t").exists()
    with pytest.raises(InvalidOption, match=f"give {argument} to create_table"):
        lw.connect(tmp_path / "lake", options={key: value}).create_table("t", **given)


@pytest.mark.parametrize(
    ("key", "value", "argument"),
    [
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "type"),
        ("hoodie.datasource.write.recordkey.field", "ts", "key"),
        ("hoodie.datasource.write.partitionpath.field", "ts", "partition_by"),
        ("hoodie.table.ordering.fields", "ts", "order_by"),
        ("hoodie.table.precombine.field", "ts", "order_by"),
        ("hoodie.datasource.write.precombine.field", "ts", "order_by"),
        ("hoodie.write.record.merge.mode", "EVENT_TIME_ORDERING", "merge_mode"),
        ("hoodie.write.table.version", "6", "version"),
        ("hoodie.datasource.write.keygenerator.type", "COMPLEX", "key_generator"),
    ],
)
def test_properties_do_not_contradict_arguments(
    key: str, value: str, argument: str, tmp_path: Path
) -> None:
    with pytest.raises(Invalid, match=f"give the argument {argument}"):
        lw.create_table(
            tmp_path, schema=SCHEMA, key="id", partition_by="dt", properties={key: value}
        )
    with pytest.raises(Invalid, match="give the argument key"):
        lw.create_table(
            tmp_path, schema=SCHEMA, key=None, properties={"hoodie.table.recordkey.fields": "id"}
        )


def test_choices_may_be_repeated(tmp_path: Path) -> None:
    said = {
        "hoodie.datasource.write.table.type": "copy_on_write",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "dt:SIMPLE",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.index.type": "GLOBAL_SIMPLE",
    }
    lw.create_table(
        tmp_path,
        schema=SCHEMA,
        key="id",
        partition_by="dt",
        order_by="ts",
        index="GLOBAL_SIMPLE",
        options={**said, "hoodie.parquet.max.file.size": "1000000"},
        properties=said,
    ).upsert([], options=said)


@pytest.mark.parametrize("kind", ["TIME", "INTERVAL DAY", "UUID"])
def test_an_unknown_type_is_named_as_it_was_written(tmp_path: Path, kind: str) -> None:
    with pytest.raises(lw.Invalid, match=f"column 'z' has the unknown type '{kind}'"):
        lw.create_table(tmp_path / "t", schema=f"k STRING, z {kind}", key="k")


def test_an_avro_schema_may_be_parsed_already(tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "n", "type": ["null", "long"]}]
    avro = {"type": "record", "name": "orders", "fields": fields}
    made = lw.create_table(tmp_path / "t", schema=avro, key="id")
    text = lw.create_table(tmp_path / "u", schema=json.dumps(avro), key="id")
    assert made.schema == text.schema and made.schema.names == ["id", "n"]
    with pytest.raises(lw.Invalid, match="JSON"):
        lw.create_table(tmp_path / "v", schema={**avro, "doc": object()}, key="id")


def test_the_key_generators_that_are_told_can_be_had(tmp_path: Path) -> None:
    with pytest.raises(lw.Invalid) as told:
        lw.create_table(tmp_path / "t", schema="id string", key="id", key_generator="ZORK")
    assert told.value.next_step == "Allowed: SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, CUSTOM."
