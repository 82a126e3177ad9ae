"""Schemas to Spark and back."""

import pytest
from hypothesis import given

pytest.importorskip("pyspark", reason="PySpark is not installed")

from pyspark.sql import types as st

from lakewright.engine.spark.schema import (
    from_spark_schema,
    nullable,
    spark_form,
    to_spark_schema,
    to_spark_type,
    worker_form,
)
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import Unsupported
from lakewright.model.schema import (
    BINARY,
    INT,
    LONG,
    STRING,
    Field,
    Fixed,
    List,
    Map,
    Struct,
    Time,
    Timestamp,
    Unit,
)
from support.schemas import structs


@given(structs)
def test_what_spark_can_say_comes_back(schema: Struct) -> None:
    """Times of day, fixed bytes and milliseconds have no type of their own on Spark."""
    there = to_spark_schema(schema)
    again = from_spark_schema(there)
    assert to_spark_schema(again) == there
    assert nullable(again) == nullable(worker_form(schema))


@given(structs)
def test_workers_hand_over_what_the_frame_declares(schema: Struct) -> None:
    shape = worker_form(schema)
    assert to_spark_schema(nullable(shape)) == to_spark_schema(nullable(schema))
    assert len(to_arrow_schema(shape)) == len(schema)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (Fixed(4), BINARY),
        (Time(Unit.MILLIS), INT),
        (Time(Unit.MICROS), LONG),
        (Timestamp(Unit.MILLIS), Timestamp(Unit.MICROS)),
        (List(Fixed(2), element_nullable=False), List(BINARY)),
        (Map(Time(Unit.MICROS)), Map(LONG, STRING)),
    ],
)
def test_forms(kind, form) -> None:
    assert spark_form(kind) == form
    assert to_spark_type(form).simpleString() == to_spark_type(kind).simpleString()


def test_a_type_without_a_home_is_named() -> None:
    schema = st.StructType([st.StructField("a", st.ArrayType(st.DayTimeIntervalType()))])
    with pytest.raises(Unsupported, match=r"a\.element"):
        from_spark_schema(schema)


def test_narrow_and_bounded_types() -> None:
    schema = st.StructType(
        [st.StructField("b", st.ByteType(), False), st.StructField("v", st.VarcharType(9))]
    )
    assert from_spark_schema(schema) == Struct(
        (Field("b", INT, nullable=False), Field("v", STRING))
    )
