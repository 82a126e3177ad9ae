"""Every metadata file that real Hudi left in the fixture tables: read, written again, compared."""

import datetime as dt
import decimal
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest

from fixture_tables import OWN, fixtures_root, table_params
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.file_names import (
    base_file,
    base_file_name,
    log_file,
    log_file_name,
)
from lakewright.format.hudi.hashing_config import (
    decode_hashing_config,
    encode_hashing_config,
    parse_hashing_config_name,
)
from lakewright.format.hudi.history import append_history, read_history
from lakewright.format.hudi.index_defs import decode_index_defs, encode_index_defs
from lakewright.format.hudi.instant_names import instant_file_name, parse_instant_name
from lakewright.format.hudi.internal_schema import parse_history, render_history
from lakewright.format.hudi.metadata import (
    clean,
    commit,
    compaction,
    indexing,
    replace_plan,
    restore,
    rollback,
)
from lakewright.format.hudi.metadata.shapes import RecordOf, avro_schema
from lakewright.format.hudi.partition_metadata import (
    PartitionMetadata,
    decode_partition_metadata,
    encode_partition_metadata,
)
from lakewright.format.hudi.partition_paths import partition_path, partition_values
from lakewright.format.hudi.properties import (
    CHECKSUM,
    load_properties,
    parse_properties,
    render_properties,
    table_checksum,
)
from lakewright.model.instant import Action, Instant, State
from lakewright.model.schema import Struct
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage

Codec = tuple[RecordOf[Any], Callable[[bytes, str], Any], Callable[[Any, int], bytes]]
COMMIT: Codec = (
    commit.COMMIT,
    commit.decode_commit,
    lambda value, layout: commit.encode_commit(value, layout, replace=False),
)
REPLACE: Codec = (
    commit.REPLACE_COMMIT,
    commit.decode_commit,
    lambda value, layout: commit.encode_commit(value, layout, replace=True),
)
COMPACTION: Codec = (
    compaction.COMPACTION_PLAN,
    compaction.decode_compaction_plan,
    lambda value, _: compaction.encode_compaction_plan(value),
)
CLUSTERING: Codec = (
    replace_plan.REPLACE_PLAN,
    replace_plan.decode_replace_plan,
    lambda value, _: replace_plan.encode_replace_plan(value),
)
CLEANING: Codec = (
    clean.CLEAN_PLAN,
    clean.decode_clean_plan,
    lambda value, _: clean.encode_clean_plan(value),
)
R, F, C = State.REQUESTED, State.INFLIGHT, State.COMPLETED
CODECS: Mapping[tuple[Action, State], Codec] = {
    (Action.COMMIT, F): COMMIT,
    (Action.COMMIT, C): COMMIT,
    # Empty, but for those that the upgrade of Hudi 1.0 has rewritten.
    (Action.DELTACOMMIT, R): COMMIT,
    (Action.DELTACOMMIT, F): COMMIT,
    (Action.DELTACOMMIT, C): COMMIT,
    (Action.REPLACECOMMIT, R): CLUSTERING,
    (Action.REPLACECOMMIT, F): COMMIT,
    (Action.REPLACECOMMIT, C): REPLACE,
    (Action.CLUSTERING, R): CLUSTERING,
    (Action.COMPACTION, R): COMPACTION,
    (Action.LOGCOMPACTION, R): COMPACTION,
    (Action.CLEAN, R): CLEANING,
    # Empty, but for those of Hudi 1.0.
    (Action.CLEAN, F): CLEANING,
    (Action.CLEAN, C): (
        clean.CLEAN,
        clean.decode_clean,
        lambda value, _: clean.encode_clean(value),
    ),
    (Action.ROLLBACK, R): (
        rollback.ROLLBACK_PLAN,
        rollback.decode_rollback_plan,
        lambda value, _: rollback.encode_rollback_plan(value),
    ),
    (Action.ROLLBACK, C): (
        rollback.ROLLBACK,
        rollback.decode_rollback,
        lambda value, _: rollback.encode_rollback(value),
    ),
    (Action.RESTORE, R): (
        restore.RESTORE_PLAN,
        restore.decode_restore_plan,
        lambda value, _: restore.encode_restore_plan(value),
    ),
    (Action.RESTORE, C): (
        restore.RESTORE,
        restore.decode_restore,
        lambda value, _: restore.encode_restore(value),
    ),
    (Action.SAVEPOINT, C): (
        restore.SAVEPOINT,
        restore.decode_savepoint,
        lambda value, _: restore.encode_savepoint(value),
    ),
    (Action.INDEXING, R): (
        indexing.INDEX_PLAN,
        indexing.decode_index_plan,
        lambda value, _: indexing.encode_index_plan(value),
    ),
    (Action.INDEXING, C): (
        indexing.INDEX_COMMIT,
        indexing.decode_index_commit,
        lambda value, _: indexing.encode_index_commit(value),
    ),
}


def params(*families: str) -> list[Any]:
    """Tables by family and name; absent families are one skipped parameter each."""
    return [
        pytest.param((family, param), id=f"{family}-{param}") if isinstance(param, str) else param
        for family in families
        for param in table_params(family)
    ]


TABLES = params("golden", "hudi", "own")


@pytest.fixture
def root(table: tuple[str, str], request: pytest.FixtureRequest) -> Path:
    family, name = table
    unpack: Callable[[str], Path] = request.getfixturevalue(f"{family}_table")
    return unpack(name)


def tables_of(root: Path) -> Iterator[tuple[Storage, TableConfig]]:
    """The table, and the metadata table inside it where there is one."""
    for folder in (root, root / ".hoodie" / "metadata"):
        if (folder / ".hoodie" / "hoodie.properties").is_file():
            storage = open_storage(folder)
            yield storage, TableConfig.of(load_properties(storage))


def timeline(storage: Storage, config: TableConfig) -> Iterator[tuple[Instant, str, bytes]]:
    for stat in storage.list(config.timeline_folder):
        name = stat.path.rpartition("/")[2]
        if name == "hoodie.properties" or name.endswith(".crc"):
            continue
        instant = parse_instant_name(name, config.layout)
        assert instant is not None, name
        assert instant_file_name(instant, config.layout) == name
        yield instant, stat.path, storage.read(stat.path)


def plain(schema: Any) -> Any:
    """A schema without notes, and without the defaults that some types inside carry."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "doc"}
    if "name" not in schema or "fields" in schema:
        kept.pop("default", None)
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = plain(kept[key])
    if "fields" in kept:
        kept["fields"] = [plain(field) for field in kept["fields"]]
    return kept


@pytest.mark.parametrize("table", TABLES)
def test_every_timeline_file_is_read_and_written_again(root: Path, table: tuple[str, str]) -> None:
    read = 0
    for storage, config in tables_of(root):
        for instant, path, data in timeline(storage, config):
            if not data:
                continue
            shape, decode, encode = CODECS[instant.action, instant.state]
            value = decode(data, path)
            again = encode(value, config.layout)
            assert decode(again, path) == value
            if data.startswith(b"Obj\x01"):
                _same_records(data, again, shape)
            else:
                _same_json(data, again)
            read += 1
    assert read or "empty" in table[1]


def _same_records(data: bytes, again: bytes, shape: RecordOf[Any]) -> None:
    """Compare with an independent decoder: the same names, and values that mean the same."""
    theirs, ours = fastavro.reader(io.BytesIO(data)), fastavro.reader(io.BytesIO(again))
    assert _meaning(next(theirs)) == _meaning(next(ours))
    found = plain(json.loads(theirs.metadata["avro.schema"]))
    if json.dumps(found).count('"name"') == json.dumps(avro_schema(shape)).count('"name"'):
        assert found == plain(avro_schema(shape))


def _same_json(data: bytes, again: bytes) -> None:
    theirs, ours = json.loads(data), json.loads(again)
    known = {member.name for member in commit.WRITE_STAT.members}
    for stats in theirs["partitionToWriteStats"].values():
        for stat in stats:
            for key in set(stat) - known:
                del stat[key]
    theirs = {key: value for key, value in theirs.items() if key in ours}
    assert _meaning(theirs) == _meaning(ours)


def _meaning(value: Any) -> Any:
    """Null, 0, false, and what is empty say the same where Hudi reads them."""
    if isinstance(value, dict):
        parts = {key: _meaning(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part}
    if isinstance(value, list):
        return [_meaning(part) for part in value]
    return value


@pytest.mark.parametrize("table", TABLES)
def test_properties_hold_and_survive(root: Path, table: tuple[str, str]) -> None:
    for storage, config in tables_of(root):
        data = storage.read(".hoodie/hoodie.properties")
        values = parse_properties(data)
        assert values[CHECKSUM] == str(table_checksum(values))
        assert config.name == values["hoodie.table.name"]
        assert parse_properties(render_properties(values)) == values
        lines = {line for line in data.decode().splitlines() if not line.startswith("#")}
        assert set(render_properties(values).decode().splitlines()) == lines


@pytest.mark.parametrize("table", TABLES)
def test_files_have_names_and_partitions_have_metadata(root: Path, table: tuple[str, str]) -> None:
    partitions = files = 0
    for folder, _, names in os.walk(root):
        relative = Path(folder).relative_to(root).as_posix()
        partition = "" if relative == "." else relative
        if partition.startswith(".hoodie"):
            continue
        for file_name in names:
            if file_name == ".hoodie_partition_metadata":
                data = Path(folder, file_name).read_bytes()
                metadata = decode_partition_metadata(data, file_name)
                assert metadata == PartitionMetadata.of(partition, metadata.commit_time)
                again = encode_partition_metadata(metadata)
                assert decode_partition_metadata(again, file_name) == metadata
                partitions += 1
            elif not file_name.endswith((".crc", ".DS_Store")):
                assert _named_again(partition, file_name) == file_name
                files += 1
    assert bool(partitions) == bool(files)


def _named_again(partition: str, name: str) -> str:
    base, log = base_file(partition, name), log_file(partition, name)
    if base is not None:
        ending = name.rpartition(".")[2]
        return base_file_name(base.file_id, base.write_token, base.instant, ending)
    assert log is not None, name
    return log_file_name(log.file_id, log.instant, log.version, log.write_token, cdc=log.cdc)


@pytest.mark.parametrize("table", TABLES)
def test_index_and_hashing_configs_survive(root: Path, table: tuple[str, str]) -> None:
    for path in root.rglob("index.json"):
        definitions = decode_index_defs(path.read_bytes())
        assert definitions
        assert decode_index_defs(encode_index_defs(definitions.values())) == definitions
        assert json.loads(encode_index_defs(definitions.values())) == json.loads(path.read_bytes())
    for path in root.rglob("*.hashing_config"):
        config = decode_hashing_config(path.read_bytes(), path.name)
        assert parse_hashing_config_name(path.name) == config.instant
        assert encode_hashing_config(config) == path.read_bytes()


@pytest.mark.parametrize("table", [p for p in params("own") if "renamed" in str(p.id)])
def test_histories_of_schemas_survive_byte_for_byte(root: Path, table: tuple[str, str]) -> None:
    files = [path for path in root.rglob("*.schemacommit") if path.stat().st_size]
    assert files
    for path in files:
        history = parse_history(path.read_bytes(), path.name)
        assert len({schema.version for schema in history}) == len(history) > 0
        assert render_history(history) == path.read_bytes()


@pytest.mark.parametrize("table", [p for p in params("golden", "own") if "archived" in str(p.id)])
def test_archived_history_reads_and_continues_into_the_timeline(
    root: Path, table: tuple[str, str]
) -> None:
    storage = open_storage(root)
    config = TableConfig.of(load_properties(storage))
    entries = list(read_history(storage, config))
    times = [entry.instant.requested for entry in entries]
    assert times == sorted(times)
    assert len(times) >= 5
    active = min(instant.requested for instant, _, _ in timeline(storage, config))
    assert max(times) < active
    for entry in entries:
        assert entry.metadata is not None
        _, decode, _ = CODECS[entry.instant.action, C]
        assert decode(entry.metadata, "archive")
        if entry.instant.action is Action.CLEAN:
            assert entry.plan is not None
            assert clean.decode_clean_plan(entry.plan, "archive").policy
    middle = times[3]
    assert [e.instant.requested for e in read_history(storage, config, after=middle)] == times[4:]
    copy = open_storage(f"memory://history-{table[1]}")
    for start in range(0, len(entries), 3):
        append_history(copy, config, entries[start : start + 3])
    assert list(read_history(copy, config)) == entries


def latest_schema(storage: Storage, config: TableConfig) -> Struct | None:
    completed = sorted(
        (instant, path)
        for instant, path, _ in timeline(storage, config)
        if instant.is_completed and instant.action.writes_data
    )
    for _, path in reversed(completed):
        text = commit.decode_commit(storage.read(path), path).schema
        if text:
            return parse_avro_schema(text)
    return None


def canonical(value: object) -> object:
    """A value as the recorded rows write it."""
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None).isoformat(timespec="microseconds")
        case dt.date():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case _:
            return value


def recorded(family: str, name: str) -> list[dict[str, Any]]:
    if family == "own":
        rows = json.loads((OWN / f"{name}.json").read_text())["snapshot"]
    else:
        root = fixtures_root()
        assert root is not None
        rows = json.loads((root / "golden-expected.json").read_text())[name]["snapshot"]
    return [row for row in rows if row.get("_hoodie_partition_path") is not None]


@pytest.mark.parametrize("table", params("golden", "own"))
def test_partition_values_are_those_that_hudi_shows(root: Path, table: tuple[str, str]) -> None:
    rows = recorded(*table)
    storage = open_storage(root)
    config = TableConfig.of(load_properties(storage))
    schema = latest_schema(storage, config)
    assert schema is not None
    for row in rows:
        path = row["_hoodie_partition_path"]
        values = partition_values(path, config, schema)
        assert {key: canonical(value) for key, value in values.items()} == {
            key: row[key] for key in values
        }
        if path and len(path.split("/")) == len(config.partition_fields):
            simple = [field.name for field in config.partition_fields if field.kind == "SIMPLE"]
            assert list(values) == simple


@pytest.mark.parametrize("table", params("golden", "own"))
def test_rows_would_go_to_the_partitions_that_hudi_chose(
    root: Path, table: tuple[str, str]
) -> None:
    storage = open_storage(root)
    config = TableConfig.of(load_properties(storage))
    schema = latest_schema(storage, config)
    assert schema is not None
    for row in recorded(*table):
        path = row["_hoodie_partition_path"]
        values = partition_values(path, config, schema)
        for field in config.partition_fields:
            if field.kind == "TIMESTAMP":
                values = {**values, field.name: _raw(row[field.name])}
        # What a reader shows has lost these: text before "=", microseconds, other levels.
        shown = all(field.name in values for field in config.partition_fields)
        lost = not config.hive_style and "=" in path
        if shown and not lost and "when" not in values:
            assert partition_path(values, config, schema) == path


def _raw(shown: object) -> object:
    """A time as the row stores it: Hudi shows numbers as text."""
    return int(shown) if isinstance(shown, str) and shown.isdigit() else shown
