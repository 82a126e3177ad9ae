"""Keys that no option has: refused where they are ours, told of where they are Hudi's."""

import importlib
import logging
import pkgutil
from itertools import count

import pytest

import lakewright
import lakewright as lw
from lakewright.model.errors import InvalidOption
from lakewright.model.option_names import OPTIONS, PROPERTIES
from lakewright.model.options import check_options, declared

NUMBERS = count()
SLIP = "lakewright.write.driver-byte"
NEAREST = "lakewright.write.driver-bytes"


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the log tell anew of what other tests have given."""
    monkeypatch.setattr("lakewright.model.options._TOLD", set())


def place() -> str:
    return f"memory://option-names/t{next(NUMBERS)}"


def make(**details: object) -> lw.Table:
    return lw.create_table(place(), schema="id string, n long", key="id", **details)


def test_the_list_names_what_is_declared() -> None:
    for module in pkgutil.walk_packages(lakewright.__path__, "lakewright."):
        importlib.import_module(module.name)
    assert {key for option in declared() for key in (option.key, *option.old_keys)} == OPTIONS
    assert not OPTIONS & PROPERTIES


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        (SLIP, NEAREST),
        ("lakewrigth.write.driver-bytes", NEAREST),
        ("lakewright.write.thread", "lakewright.write.threads"),
        ("s3.acces-key", "s3.access-key"),
    ],
)
def test_an_unknown_key_of_ours_is_refused_with_the_nearest(key: str, nearest: str) -> None:
    with pytest.raises(InvalidOption, match=f"Did you mean '{nearest}'") as refusal:
        check_options({NEAREST: "1", key: "1"})
    assert refusal.value.facts["key"] == key


def test_a_key_that_resembles_nothing_is_refused_too() -> None:
    with pytest.raises(InvalidOption, match="options page"):
        check_options({"lakewright.colour-of-the-sky-at-noon": "blue"})


def test_every_door_refuses_it() -> None:
    table = make()
    wrong = {SLIP: "1"}
    doors = {
        "open": lambda: lw.open_table(table.path, options=wrong),
        "connect": lambda: lw.connect(place(), options=wrong),
        "create": lambda: make(options=wrong),
        "properties": lambda: make(properties=wrong),
        "set": lambda: table.set_properties(wrong),
        "insert": lambda: table.insert([{"id": "a", "n": 1}], options=wrong),
        "upsert": lambda: table.upsert([{"id": "a", "n": 1}], options=wrong),
        "bulk_insert": lambda: table.bulk_insert([{"id": "a", "n": 1}], options=wrong),
        "nothing": lambda: table.insert([], options=wrong),
        "delete": lambda: table.delete(["a"], options=wrong),
        "delete where": lambda: table.delete("n > 0", options=wrong),
        "insert_overwrite": lambda: table.insert_overwrite([{"id": "a"}], options=wrong),
        "insert_overwrite_table": lambda: table.insert_overwrite_table([], options=wrong),
        "delete_partitions": lambda: make(partition_by="n").delete_partitions([], options=wrong),
        "update": lambda: table.update({"n": "1"}, where="n > 0", options=wrong),
        "merge": lambda: table.merge(
            [{"id": "a", "n": 1}], on="t.id = s.id", when_matched="update", options=wrong
        ),
        "stream": lambda: table.stream_writer(stream="s", options=wrong),
        "clean": lambda: table.clean(options=wrong),
        "create sql": lambda: lw.connect(place()).sql(
            f"CREATE TABLE t (id string) USING hudi TBLPROPERTIES ('{SLIP}' = '1')"
        ),
        "create sql, options": lambda: lw.connect(place()).sql(
            f"CREATE TABLE t (id string) USING hudi OPTIONS ('{SLIP}' = '1')"
        ),
        "alter sql": lambda: lw.connect(place()).sql(
            "CREATE TABLE t (id string) USING hudi; "
            f"ALTER TABLE t SET TBLPROPERTIES ('{SLIP}' = '1')"
        ),
    }
    for name, door in doors.items():
        with pytest.raises(InvalidOption, match=NEAREST):
            door()
            pytest.fail(name)
    assert table.timeline.instants == ()


def test_a_key_of_hudi_without_effect_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    table = make()
    of_hudi = {
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.parquet.max.file.sizes": "9",
        "hoodie.index.type": "SIMPLE",
        "hoodie.table.name": table.name,
    }
    with caplog.at_level(logging.WARNING), pytest.warns(UserWarning, match="did you") as seen:
        for _ in range(3):
            table.upsert([{"id": "a", "n": 1}], options=of_hudi)
    assert len(seen) == 1
    (told,) = caplog.messages
    assert "hoodie.upsert.shuffle.parallelism," in told
    assert "hoodie.parquet.max.file.sizes (did you mean hoodie.parquet.max.file.size?)" in told
    assert "index.type" not in told and "table.name" not in told


def test_properties_of_hudi_are_stored_and_what_is_not_obeyed_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stored = {
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.table.cdc.enabled": "false",
        "hoodie.cleaner.parallelism": "3",
    }
    with caplog.at_level(logging.WARNING):
        table = make(properties=stored)
    assert stored.items() <= table.definition.properties.items()
    assert caplog.messages == ["options that have no effect here: hoodie.cleaner.parallelism"]
