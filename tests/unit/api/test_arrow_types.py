"""Every Arrow type, alone and inside others: stored and read the same, or refused at once."""

from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw
from support.arrow_types import REFUSED, STORED, WRAPPINGS, shown

NUMBERS = count()
INSIDE = pytest.mark.parametrize("inside", WRAPPINGS)
KEYS = pa.array(["a", "b"])


def create(kind: str) -> lw.Table:
    path = f"memory://arrow-types-{next(NUMBERS)}/t"
    table = lw.create_table(path, schema="k string", key="k", type=kind)
    table.insert([{"k": "z"}])
    return table


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("name", STORED)
def test_a_stored_type_comes_back(name: str, kind: str) -> None:
    table = create(kind)
    columns = {inside: way.array(STORED[name]) for inside, way in WRAPPINGS.items()}
    table.upsert(pa.table({"k": KEYS, **columns}))
    rows = table.scan(where="k <> 'z'").to_arrow().sort_by("k")
    for inside, way in WRAPPINGS.items():
        assert rows.column(inside).to_pylist() == way.shown(shown(name)), inside


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_type_leaves_nothing(name: str, tmp_path: Path) -> None:
    given, words = REFUSED[name]
    table = create("MERGE_ON_READ")
    before = table.timeline.instants
    for way in WRAPPINGS.values():
        column = way.array(given)
        with pytest.raises(lw.LakewrightError, match=f"v.*{words}"):
            table.upsert(pa.table({"k": KEYS, "v": column}))
        schema = pa.schema([("k", pa.string()), ("v", column.type)])
        with pytest.raises(lw.LakewrightError, match=f"v.*{words}"):
            lw.create_table(tmp_path / "t", schema=schema, key="k")
        assert not (tmp_path / "t").exists()
    assert lw.open_table(table.path).timeline.instants == before


@INSIDE
def test_an_inner_type_that_nobody_knows_is_refused(inside: str) -> None:
    table = create("COPY_ON_WRITE")
    rows = pa.table({"k": KEYS, "v": WRAPPINGS[inside].array(pa.nulls(2))})
    if inside == "bare":
        table.upsert(rows)
        assert table.schema.names == ["k"]  # a column of nothing but null says nothing
    else:
        with pytest.raises(lw.Invalid, match="inner type is not known"):
            table.upsert(rows)


def test_a_list_of_dicts_with_an_empty_one_is_refused() -> None:
    table = create("COPY_ON_WRITE")
    with pytest.raises(lw.Invalid, match="v is a struct without fields"):
        table.upsert([{"k": "a", "v": {}}])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_time_of_day_that_a_table_has_already_is_read_and_written(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = pa.time64("us")
    inner = pa.struct([("at", pa.time32("ms"))])
    schema = pa.schema([("k", pa.string()), ("at", clock), ("s", inner)])
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("lakewright.actions.create.check_columns", lambda _: None)
        table = lw.create_table(tmp_path / "t", schema=schema, key="k", type=kind)
    values = pa.array([1, None], clock)
    nested = pa.array([{"at": 1}, {"at": None}], inner)
    rows = pa.table({"k": KEYS, "at": values, "s": nested})
    table.insert(rows)
    table.upsert(rows.slice(0, 1))
    assert table.scan().to_arrow().sort_by("k").to_pylist() == rows.to_pylist()
    with pytest.raises(lw.Unsupported, match=r"s\.more is a time of day"):
        wider = pa.array([{"at": 1, "more": 1}, None], pa.struct([*inner, ("more", clock)]))
        table.upsert(pa.table({"k": KEYS, "s": wider}))
