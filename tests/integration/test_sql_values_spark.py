"""Values that statements store on Spark, and scripts with mistakes: whole, or refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.errors import Invalid, LakewrightError
from support.sql_values import ACCEPTED, CREATE, INSERT, REFUSED, STORED

pytestmark = pytest.mark.spark

_ANSI = "spark.sql.ansi.enabled"


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[lw.Lake]:
    before = spark.conf.get(_ANSI)
    spark.conf.set(_ANSI, "true")  # as it is by itself since Spark 4
    found = lw.connect(tmp_path, spark=spark)
    found.sql(CREATE)
    yield found
    spark.conf.set(_ANSI, before)


def _rows(lake: lw.Lake) -> dict[str, tuple[Any, ...]]:
    found = lake.table("d.v").scan().to_arrow().to_pylist()
    return {row.pop("id"): tuple(row.values()) for row in found}


def test_values_are_stored_whole_or_refused(lake: lw.Lake) -> None:
    lake.sql(INSERT)
    before = _rows(lake)
    for text, told in REFUSED:
        with pytest.raises(Invalid, match=told):
            lake.sql(text)
    assert _rows(lake) == before
    assert lake.tables() == ["d.v"]
    for text in ACCEPTED:
        lake.sql(text)
    assert _rows(lake) == STORED


def test_a_script_with_a_mistake_changes_nothing(lake: lw.Lake) -> None:
    for mistake in (
        "SELEKT 1",
        "SELECT * FORM d.v WHERE",
        "CREATE VIEW v AS SELECT FROM (",
        "INSERT INTO d.v SELECT * FROM d.v WHERE WHERE",
        "CALL no_such_thing()",
    ):
        with pytest.raises(LakewrightError):
            lake.sql(f"{INSERT}; {mistake}")
        assert not _rows(lake), mistake
    (row,) = lake.sql(f"{INSERT}; SELECT count(*) AS n FROM d.v").collect()
    assert row["n"] == 2
