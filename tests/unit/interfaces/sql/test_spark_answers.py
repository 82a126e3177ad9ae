"""Without Spark, queries answer as Spark does, in its types, or are refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from golden.make_spark_answers import ANSWERS, plain
from lakewright.format.arrow.schema import from_arrow_type
from lakewright.interfaces.sql.querying import run_query
from lakewright.model.errors import LakewrightError
from lakewright.model.expression.types import sql_type
from support.spark_expressions import CREATE, EXPRESSIONS, QUERIES, ROWS

pytest.importorskip("duckdb", reason="DuckDB is not installed")

_GIVEN = json.loads(ANSWERS.read_text())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> lw.Lake:
    found = lw.connect(tmp_path_factory.mktemp("answers"))
    found.sql(CREATE)
    found.table("t").insert(pa.Table.from_pylist(ROWS, schema=found.table("t").scan().schema))
    return found


def _refused(error: LakewrightError) -> bool:
    return "without Spark" in str(error)


def _types(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        yield "void" if pa.types.is_null(field.type) else sql_type(from_arrow_type(field.type)).lower()


def _values(column: pa.ChunkedArray) -> list[Any]:
    return [plain(dict(v) if pa.types.is_map(column.type) and v is not None else v) for v in column.to_pylist()]
