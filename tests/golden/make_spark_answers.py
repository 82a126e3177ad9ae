"""Make spark_answers.json: what Spark answers, and in which types, to expressions and queries.

    python tests/golden/make_spark_answers.py

The session is as Spark 4 is by itself (ANSI), in the zone UTC.
"""

import datetime as dt
import json
import math
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.spark_expressions import CREATE, EXPRESSIONS, QUERIES, ROWS

ANSWERS = Path(__file__).parent / "spark_answers.json"


def plain(value: Any) -> Any:
    """Return a value in JSON's terms; the type beside it tells what it is."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else repr(value)
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            aware = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return aware.replace(tzinfo=None).isoformat()
        case dt.date() | dt.timedelta():
            return str(value)
        case bytes() | bytearray():
            return bytes(value).hex()
        case list() | tuple() if not hasattr(value, "asDict"):
            return [plain(one) for one in value]
        case dict():
            return {str(k): plain(v) for k, v in sorted(value.items())}
        case _ if hasattr(value, "asDict"):
            return {k: plain(v) for k, v in value.asDict().items()}
        case _:
            return value


def view(spark: Any) -> None:
    """Make the table of the expressions a view of the session."""
    columns = CREATE.partition("(")[2].partition(") USING")[0]
    frame = spark.createDataFrame([tuple(row.values()) for row in ROWS], columns)
    frame.coalesce(1).createOrReplaceTempView("t")


def answer(spark: Any, expression: str) -> dict[str, Any]:
    """Return type and values of an expression; rows that have none are told apart."""
    try:
        frame = spark.sql(f"SELECT id, {expression} AS x FROM t ORDER BY id")
        kind = frame.dtypes[1][1]
    except Exception as error:  # noqa: BLE001 - whatever Spark says is its answer
        return {"refused": str(error).partition("]")[0].lstrip("[")}
    try:
        return {"type": kind, "values": [plain(row["x"]) for row in frame.collect()]}
    except Exception:  # noqa: BLE001 - some row has no value: they are asked one by one
        pass
    values, errors = [], []
    for row in ROWS:
        try:
            one = spark.sql(f"SELECT {expression} AS x FROM t WHERE id = '{row['id']}'").collect()
            values.append(plain(one[0]["x"]))
        except Exception:  # noqa: BLE001 - whatever Spark says is its answer
            values.append(None)
            errors.append(row["id"])
    return {"type": kind, "values": values, "errors": errors}


def query_answer(spark: Any, text: str) -> dict[str, Any]:
    """Return types and rows of a query."""
    try:
        frame = spark.sql(text)
        rows = [[plain(value) for value in row] for row in frame.collect()]
        return {"types": [kind for _, kind in frame.dtypes], "rows": rows}
    except Exception as error:  # noqa: BLE001 - whatever Spark says is its answer
        return {"refused": str(error).partition("]")[0].lstrip("[")}


def main() -> None:
    """Ask Spark everything."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    view(spark)
    found = {
        "spark": spark.version,
        "expressions": {text: answer(spark, text) for text in EXPRESSIONS},
        "queries": {text: query_answer(spark, text) for text in QUERIES},
    }
    ANSWERS.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
