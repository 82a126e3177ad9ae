"""Statements that would lose a value, and their kin that say what is meant; on every engine."""

import datetime as dt
from decimal import Decimal

CREATE = (
    "CREATE TABLE d.v (id STRING, n INT, f DOUBLE, q DECIMAL(10,2), day DATE, b BOOLEAN) "
    "USING hudi TBLPROPERTIES (primaryKey = 'id')"
)
INSERT = (
    "INSERT INTO d.v VALUES ('a', 4, 2.5, 1.25, DATE '2026-11-01', true), "
    "('b', 0, 2, NULL, NULL, NULL)"
)
#: Each with a part of what it is refused with.
REFUSED = (
    ("UPDATE d.v SET n = 2.7", "column n of type int"),
    ("UPDATE d.v SET n = f", "column n of type int"),
    ("UPDATE d.v SET n = 5 / 2", "column n of type int"),
    ("UPDATE d.v SET q = 1.239", "column q of type decimal"),
    ("UPDATE d.v SET q = '1.239'", "column q of type decimal"),
    ("UPDATE d.v SET q = f * 1e9D", "column q of type decimal"),
    ("UPDATE d.v SET day = TIMESTAMP '2026-11-01 12:00:00Z'", "column day of type date"),
    ("UPDATE d.v SET b = n", "column b of type boolean"),
    ("UPDATE d.v SET n = n + 2147483647", "column n of type int"),
    ("UPDATE d.v SET f = n / n", "has no value"),
    ("UPDATE d.v SET f = n % 0", "has no value"),
    ("UPDATE d.v SET f = coalesce(q, n / 0)", "has no value"),
    ("UPDATE d.v SET n = CAST('abc' AS INT)", "CAST\\('abc' AS INT\\) has no value"),
    ("UPDATE d.v SET n = CAST(id AS INT)", "has no value"),
    (
        "MERGE INTO d.v USING (SELECT 'a' AS id, 2.7 AS n) s ON v.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n",
        "column n of type int",
    ),
    (
        "MERGE INTO d.v USING (SELECT 'a' AS id, 0 AS n) s ON v.id = s.id "
        "WHEN MATCHED THEN UPDATE SET f = 1 / s.n",
        "has no value",
    ),
    ("INSERT INTO d.v (id, n) VALUES ('z', 2.7)", "column n of type int"),
    ("INSERT INTO d.v (id, q) VALUES ('z', 1.239)", "column q of type decimal"),
    ("INSERT INTO d.v (id, n) SELECT 'z', CAST('abc' AS INT)", "(?i)convert|cannot be cast"),
    ("INSERT INTO d.v (id, n) SELECT id, CAST(id AS INT) FROM d.v", "(?i)convert|cannot be cast"),
    ("INSERT INTO d.v (id, f) SELECT id, 1 / n FROM d.v", "Division by zero"),
    ("INSERT INTO d.v (id, f) SELECT id, 1 / n / 2 FROM d.v", "Division by zero"),
    (
        "CREATE TABLE d.made USING hudi TBLPROPERTIES (primaryKey = 'id') AS "
        "SELECT 'a' AS id, 1 / 0 AS f",
        "Division by zero",
    ),
)
ACCEPTED = (
    "UPDATE d.v SET n = CAST(2.7 AS INT), q = CAST(1.239 AS DECIMAL(10,2))",
    "UPDATE d.v SET q = q * 1.101 + 0.001D WHERE id = 'a'",
    "UPDATE d.v SET f = CASE WHEN n > 1 THEN 6 / (n - 1) ELSE coalesce(f, n / 0) END",
    "UPDATE d.v SET n = TRY_CAST(id AS INT) WHERE id = 'b'",
    "UPDATE d.v SET day = TIMESTAMP '2026-11-02 00:00:00Z', b = 1, q = 2 WHERE id = 'b'",
    "INSERT INTO d.v VALUES ('c', NULL, NULL, 1, NULL, NULL)",
    "INSERT INTO d.v (id, n) SELECT 'd', NULL",
    "MERGE INTO d.v USING (SELECT 'e' AS id, NULL AS n, NULL AS other) s ON v.id = s.id "
    "WHEN NOT MATCHED THEN INSERT (id, n, q) VALUES (s.id, s.n, 3)",
)
#: What is left by key, once all of these were run.
STORED = {
    "a": (2, 6.0, Decimal("1.37"), dt.date(2026, 11, 1), True),
    "b": (None, 6.0, Decimal("2.00"), dt.date(2026, 11, 2), True),
    "c": (None, None, Decimal("1.00"), None, None),
    "d": (None, None, None, None, None),
    "e": (None, None, Decimal("3.00"), None, None),
}
