"""Run SQL over Spark Connect and print the rows that are left; run as a script.

The argument is the lake's folder. A Connect session cannot live in a process that has a classic
one, so tests start this as a process of its own.
"""

import json
import sys
import warnings

from pyspark.sql import SparkSession

import lakewright as lw

STATEMENTS = (
    "CREATE TABLE t (id STRING, n INT, p STRING) USING hudi PARTITIONED BY (p) "
    "TBLPROPERTIES (primaryKey = 'id')",
    "INSERT INTO t VALUES ('a', 1, 'x'), ('b', 2, 'x'), ('c', 3, 'y')",
    "UPDATE t SET n = n + 10, p = 'moved' WHERE id = 'a'",
    "MERGE INTO t USING (SELECT 'b' AS id, 0 AS n, 'x' AS p UNION ALL SELECT 'n', 7, 'x') AS s "
    "ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO t VALUES ('it''s ${x}', NULL, 'q'), ('its ', 1, 'q')",
    "DELETE FROM t WHERE id = 'its '; SELECT 1",
)
#: Scripts that are refused before anything of them runs.
MISTAKES = (
    "DELETE FROM t; SELEKT 1",
    "DELETE FROM t; SELECT * FORM t WHERE",
    "DELETE FROM t; CREATE",
)


def main(place: str) -> None:
    warnings.simplefilter("ignore")
    builder = SparkSession.builder.remote("local[2]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    lake = lw.connect(place, spark=spark)
    for statement in STATEMENTS:
        lake.sql(statement)
    for script in MISTAKES:
        try:
            lake.sql(script)
        except lw.LakewrightError:
            continue
        raise AssertionError(script)
    answer = lake.sql("SELECT id, n, t.p FROM t WHERE id <> '{}' ORDER BY id")
    lake.sql("DELETE FROM t WHERE id = 'c'")  # the answer keeps to what was there when it was asked
    print(json.dumps([list(row) for row in answer.collect()]))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
