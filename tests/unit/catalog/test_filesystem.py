"""Databases and tables as folders."""

from pathlib import Path

import pytest

import lakewright as lw


@pytest.fixture
def lake(tmp_path: Path) -> lw.Lake:
    return lw.connect(tmp_path / "lake")


def table(lake: lw.Lake, name: str, **more: bool) -> lw.Table:
    return lake.create_table(name, schema="id string", key="id", **more)


def test_databases_come_with_tables_or_by_themselves(lake: lw.Lake) -> None:
    assert lake.databases() == ["default"]
    lake.create_database("empty")
    table(lake, "shop.orders")
    table(lake, "plain")
    assert lake.databases() == ["default", "empty", "shop"]
    assert lake.tables() == ["default.plain", "shop.orders"]
    with pytest.raises(lw.AlreadyExists, match="shop"):
        lake.create_database("shop")
    lake.create_database("shop", if_not_exists=True)
    lake.create_database("empty", if_not_exists=True)


def test_dropping_a_database(lake: lw.Lake) -> None:
    table(lake, "shop.orders")
    with pytest.raises(lw.Invalid, match=r"shop\.orders"):
        lake.drop_database("shop")
    lake.drop_database("shop", cascade=True)
    assert lake.databases() == ["default"]
    with pytest.raises(lw.NotFound, match="default"):
        lake.drop_database("shop")
    lake.drop_database("shop", if_exists=True)
    lake.create_database("shop")
    lake.drop_database("shop")
    assert lake.databases() == ["default"]
    with pytest.raises(lw.Invalid, match="default"):
        lake.drop_database("default", cascade=True)


def test_a_database_with_foreign_files_stays(lake: lw.Lake, tmp_path: Path) -> None:
    table(lake, "shop.orders")
    (tmp_path / "lake" / "shop" / "notes.txt").write_text("mine")
    with pytest.raises(lw.Invalid, match="none of its tables"):
        lake.drop_database("shop", cascade=True)
    assert (tmp_path / "lake" / "shop" / "notes.txt").exists()


def test_dropping_tables(lake: lw.Lake) -> None:
    path = table(lake, "shop.orders").path
    lake.drop_table("shop.orders")
    assert lake.tables() == []
    assert lw.open_table(path).name == "orders"
    with pytest.raises(lw.AlreadyExists, match="dropped table"):
        table(lake, "shop.orders")
    with pytest.raises(lw.TableNotFound, match="was dropped"):
        lake.drop_table("shop.orders")
    lake.drop_table("shop.orders", if_exists=True)
    lake.drop_table("shop.orders", cascade=True)
    assert not (Path(path) / ".hoodie" / "hoodie.properties").exists()
    assert table(lake, "shop.orders").path == path
    lake.drop_table("no.table", if_exists=True)
    with pytest.raises(lw.TableNotFound, match=r"shop\.orders"):
        lake.drop_table("no.table")


def test_a_drop_that_was_cut_off_goes_on(lake: lw.Lake, tmp_path: Path) -> None:
    place = Path(table(lake, "orders").path)
    (place / "data.parquet").write_bytes(b"")
    lake.drop_table("orders")
    (place / ".hoodie" / "hoodie.properties").unlink()  # the crash came here
    with pytest.raises(lw.Invalid, match=r"data\.parquet"):
        table(lake, "orders")
    lake.drop_table("orders", cascade=True)
    assert not (place / "data.parquet").exists()
    table(lake, "orders")
    assert lake.tables() == ["default.orders"]


def test_creating_again_where_that_is_fine(lake: lw.Lake) -> None:
    first = table(lake, "orders")
    assert table(lake, "orders", if_not_exists=True).path == first.path
    with pytest.raises(lw.AlreadyExists):
        table(lake, "orders")


@pytest.mark.parametrize("name", ["", ".", "a.", "a/b", "..", ".hidden", "a.b.c", "a b"])
def test_names_that_are_none(lake: lw.Lake, name: str) -> None:
    with pytest.raises(lw.Invalid, match="table name"):
        table(lake, name)
    with pytest.raises(lw.Invalid, match="database name"):
        lake.create_database(name)


def test_a_table_elsewhere(lake: lw.Lake, tmp_path: Path) -> None:
    away = tmp_path / "away"
    made = lake.create_table("shop.far", schema="id string", key="id", location=away)
    assert made.path == str(away)
    assert made.name == "shop.far"
    assert lake.tables() == ["shop.far"]
    assert lake.databases() == ["default", "shop"]
    with pytest.raises(lw.AlreadyExists, match=r"shop\.far"):
        table(lake, "shop.far")
    with pytest.raises(lw.AlreadyExists, match=r"shop\.far"):
        lake.register_table("shop.far", away)
    lake.drop_table("shop.far")
    assert lake.tables() == []
    assert lake.databases() == ["default"]
    assert lw.open_table(away).name == "away"


def test_registering_what_is_there(lake: lw.Lake, tmp_path: Path) -> None:
    away = tmp_path / "away"
    with pytest.raises(lw.TableNotFound):
        lake.register_table("far", away)
    lw.create_table(away, schema="id string", key="id")
    assert lake.register_table("far", away).path == str(away)
    with pytest.raises(lw.AlreadyExists, match="already"):
        lake.create_table("other", schema="id string", key="id", location=away)
    lake.drop_table("far", cascade=True)
    assert not (away / ".hoodie" / "hoodie.properties").exists()
    assert lake.tables() == []


def test_what_is_listed_can_be_opened(lake: lw.Lake, tmp_path: Path) -> None:
    lake.create_table("shop.orders", schema="id string", key="id")
    for folder in ("shop/or.ders", "sh.op/orders"):  # by path, without the catalog
        lw.create_table(tmp_path / "lake" / folder, schema="id string", key="id")
    assert lake.tables() == ["shop.orders"]
    assert [lake.table(name).name for name in lake.tables()] == ["shop.orders"]
    assert not list(lake.plans())


@pytest.mark.parametrize(
    "said", [("http://meta:9090", {}), ("https://meta", {"token": "t"}), ("lake", {"token": "t"})]
)
def test_a_metastore_server_is_refused_in_words(said: tuple[str, dict[str, str]]) -> None:
    place, details = said
    with pytest.raises(lw.Unsupported, match="metastore") as told:
        lw.connect(place, token=details.get("token"))
    assert told.value.next_step
