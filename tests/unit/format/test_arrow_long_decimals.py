"""Decimals of up to 38 digits keep all of them, whatever the context of the calling thread."""

from collections.abc import Iterator
from decimal import Context, Inexact, Rounded, localcontext
from decimal import Decimal as D

import pyarrow as pa
import pytest

from lakewright.format.arrow.expression import column, residual_filter
from lakewright.format.arrow.expression_values import compile_value
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.key_text import value_text
from lakewright.format.hudi.partition_paths import _decimal
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundComparison, BoundLiteral
from lakewright.model.expression.build import col
from lakewright.model.expression.nodes import Expression, Literal
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.values import fit_decimal, read_text
from lakewright.model.schema import Decimal
from support.long_decimals import CONDITIONS, NINES, PLACES, ROWS, SCHEMA
from support.sql_semantics import value_of

BATCH = pa.RecordBatch.from_pylist(ROWS, schema=to_arrow_schema(SCHEMA))

pytestmark = pytest.mark.usefixtures("ambient")


@pytest.fixture(params=["default", "hostile"])
def ambient(request: pytest.FixtureRequest) -> Iterator[None]:
    """The context that a thread has by itself, and one of three digits that forbids rounding."""
    hostile = Context(prec=3, Emax=9, Emin=-9, capitals=0, traps=[Inexact, Rounded])
    with localcontext(hostile if request.param == "hostile" else Context(prec=28)):
        yield


@pytest.mark.parametrize("sql", CONDITIONS)
def test_every_row_has_the_outcome_of_sql(sql: str) -> None:
    bound = bind(parse_expression(sql), SCHEMA)
    found = compile_value(bound, lazy=False)(lambda reference: column(BATCH, reference))
    assert found.to_pylist() == [value_of(bound, row) for row in ROWS]


@pytest.mark.parametrize(
    ("condition", "at"),
    [
        (col("cents") == D(f"-{PLACES}"), 1),
        (col("part") == D(f"0.{NINES}"), 0),
        (col("part").is_in([D(f"-0.{NINES}")]), 1),
        (parse_expression(f"cents = -{PLACES}"), 1),
    ],
    ids=["equal", "all-places", "in", "written"],
)
def test_a_constant_finds_its_own_row(condition: Expression, at: int) -> None:
    keep = residual_filter(bind(condition, SCHEMA))
    assert keep is not None
    assert keep(BATCH).column("whole").to_pylist() == [ROWS[at]["whole"]]


def test_a_written_constant_keeps_its_digits() -> None:
    for text in (PLACES, f"{NINES}BD", f"0.{NINES}"):
        read = parse_expression(f"-{text}")
        assert isinstance(read, Literal)
        assert read.value == D("-" + text.removesuffix("BD"))


def test_what_fits_a_type_is_told_by_its_digits() -> None:
    assert fit_decimal(D(NINES), Decimal(38, 0)) == D(NINES)
    assert fit_decimal(D(f"-0.{NINES}"), Decimal(38, 38)) == D(f"-0.{NINES}")
    assert str(fit_decimal(D("-0.004"), Decimal(3, 2))) == "0.00"
    for value, kind in (("1", Decimal(38, 38)), ("9.995", Decimal(3, 2)), ("-10", Decimal(1, 0))):
        with pytest.raises(ValueError, match=value):
            fit_decimal(D(value), kind)


def test_a_text_with_an_exponent_beyond_all_numbers_is_no_decimal() -> None:
    for text in ("1e99999999999999999999", "1e-99999999999999999999"):
        with pytest.raises(ValueError, match="1e"):
            read_text(text, Decimal(38, 0))


def test_keys_and_partitions_keep_all_digits() -> None:
    assert value_text(D(f"-{PLACES}"), Decimal(38, 2)) == f"-{PLACES}"
    assert value_text(D("1E-7"), Decimal(38, 7)) == "1E-7"
    assert value_text(D("-0.00"), Decimal(10, 2)) == "0.00"
    assert _decimal(f"-{PLACES}", Decimal(38, 2)) == D(f"-{PLACES}")


def test_a_negative_zero_is_looked_up_as_zero() -> None:
    bound = bind(parse_expression("money = -0.00"), SCHEMA)
    assert isinstance(bound, BoundComparison) and isinstance(bound.right, BoundLiteral)
    assert value_text(bound.right.value, Decimal(10, 2)) == "0.00"
