"""Rows of decimals with as many digits as there can be, and what may be asked of them.

Python computes with 28 digits unless it is told otherwise, Spark with 34, and Arrow's decimals
have no room beside the digits that they hold: each of these is met here.
"""

from decimal import Decimal as D
from typing import Any

from lakewright.model.schema import DOUBLE, LONG, STRING, Decimal, Field, Struct

NINES = "9" * 38
PLACES = "123456789012345678901234567890123456.78"
DIGITS = "12345678901234567890123456789012345678"

SCHEMA = Struct(
    (
        Field("whole", Decimal(38, 0)),
        Field("cents", Decimal(38, 2)),
        Field("mixed", Decimal(38, 18)),
        Field("part", Decimal(38, 38)),
        Field("short", Decimal(10, 0)),
        Field("money", Decimal(10, 2)),
        Field("bit", Decimal(9, 9)),
        Field("n", LONG),
        Field("x", DOUBLE),
        Field("text", STRING),
    )
)


def _row(*values: Any) -> dict[str, Any]:
    typed = (
        D(value) if isinstance(field.type, Decimal) and value is not None else value
        for field, value in zip(SCHEMA, values, strict=True)
    )
    return dict(zip((field.name for field in SCHEMA), typed, strict=True))


_MIXED = "12345678901234567890.123456789012345678"
ROWS = [
    _row(NINES, PLACES, _MIXED, f"0.{NINES}", "1", "1.00", "0.500000000", 1, 5e37, "1e-7"),
    _row(
        f"-{NINES}",
        f"-{PLACES}",
        f"-{_MIXED}",
        f"-0.{NINES}",
        "-1",
        "-0.50",
        "-0.999999999",
        -1,
        float("nan"),
        f"-{PLACES}",
    ),
    _row(
        DIGITS,
        "0.01",
        "1e-18",
        "1e-38",
        "9999999999",
        "99999999.99",
        "1e-9",
        2**63 - 1,
        1e300,
        "1e99999999999999999999",
    ),
    _row(
        f"-{DIGITS}",
        "-0.01",
        "-1e-18",
        "-1e-38",
        "0",
        "0",
        "0",
        -(2**63),
        -1e38,
        "1e-99999999999999999999",
    ),
    _row("0", "0", "0", "0", "0", "0", "0", 0, float("-inf"), "0"),
    _row("1", "1", "1", "0.5", "5", "0.49", "0.1", 7, float("inf"), "x"),
    _row(*(None,) * len(SCHEMA.fields)),
]

CONDITIONS = [
    f"whole = {NINES}",
    f"whole = -{NINES}",
    f"whole IN (-{DIGITS}, {NINES})",
    f"cents = -{PLACES}",
    f"cents < -{PLACES}",
    f"cents >= -{PLACES}BD",
    f"cents BETWEEN -{PLACES} AND {PLACES}",
    f"cents = CAST('-{PLACES}' AS DECIMAL(38,2))",
    f"part = 0.{NINES}",
    f"part <= -0.{NINES}",
    f"part > CAST('0.{NINES[:-1]}8' AS DECIMAL(38,38))",
    f"short < {NINES}",
    f"abs(whole) = {DIGITS}",
    f"-whole = {DIGITS}",
    "-(-whole) = whole",
    "abs(-whole) = abs(whole)",
    f"abs(cents) = {PLACES}",
    f"-cents = {PLACES}",
    "-mixed = abs(mixed)",
    "abs(mixed) > 0",
    "abs(part) > 0",
    f"-part = 0.{NINES}",
    "-part > 0",
    "abs(money) = 0.50",
    "-money > 0",
    "whole / 0.5 IS NULL",
    "whole / 0.5 = 2",
    "cents / 0.5 = 0.02",
    "cents / 0.5 IS NULL",
    "CAST(n AS DECIMAL(38,0)) = 1",
    "whole = n",
    "whole >= short",
    "CASE WHEN n > 0 THEN whole ELSE short END = 1",
    "coalesce(short, whole) = 0",
    "CAST(whole AS DECIMAL(37,0)) IS NULL",
    "CAST(whole AS DECIMAL(38,2)) IS NULL",
    "CAST(whole AS DECIMAL(38,38)) = 0",
    "CAST(part AS DECIMAL(38,0)) = 1",
    "CAST(part AS DECIMAL(38,0)) = 0",
    "CAST(part AS DECIMAL(1,0)) = -1",
    "CAST(part AS DECIMAL(38,37)) IS NULL",
    "CAST(part AS DECIMAL(37,37)) IS NULL",
    "CAST(cents AS DECIMAL(36,0)) = 0",
    "CAST(cents AS DECIMAL(35,0)) IS NULL",
    "CAST(bit AS DECIMAL(9,0)) = 1",
    "CAST(x AS DECIMAL(38,0)) = 50000000000000000000000000000000000000",
    "CAST(x AS DECIMAL(38,0)) IS NULL",
    "CAST(x AS DECIMAL(37,0)) IS NULL",
    "CAST(text AS DECIMAL(38,2)) = cents",
    "CAST(text AS DECIMAL(38,2)) IS NULL",
    "CAST(whole AS BOOLEAN)",
    "CAST(money AS BOOLEAN)",
    "CAST(part AS BOOLEAN)",
    "CAST(short AS BOOLEAN)",
    "CAST(bit AS INT) = 0",
    "CAST(bit AS BIGINT) = 0",
    "CAST(part AS BIGINT) = 0",
    "CAST(whole AS BIGINT) IS NULL",
    "CAST(mixed AS INT) = 0",
    "round(bit, 0) = 1",
    "floor(part) = -1",
    "ceil(part) = 1",
    "floor(x) >= 0",
    "floor(x) = 9223372036854775807",
    "ceil(x) <= -9223372036854775808",
    "ceil(x) = 0",
]
