"""What users call a schema: Arrow, Spark, Avro JSON or DDL text."""

import json
from typing import Any

import pyarrow as pa

from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import Invalid
from lakewright.model.schema import Schema, Struct


def read_schema(value: Any) -> Schema:  # noqa: ANN401 - judged by what it is
    """Turn any of the accepted forms into a schema; anything else is refused by name."""
    match value:
        case Struct():
            return value
        case pa.Schema():
            return from_arrow_schema(value)
        case str() if value.lstrip().startswith("{"):
            return parse_avro_schema(value)
        case str():
            return parse_ddl(value)
        case {"type": "record"}:  # Avro JSON that was parsed already, as fastavro takes it
            return parse_avro_schema(_avro_text(value))
        case _ if type(value).__module__.startswith("pyspark."):
            from lakewright.engine.spark.schema import from_spark_schema

            return from_spark_schema(value)
        case _:
            raise Invalid(
                f"a {type(value).__name__} is no schema.",
                next_step="Give an Arrow schema, a Spark StructType, Avro JSON or DDL text.",
            )


def _avro_text(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as cause:
        raise Invalid(
            f"the Avro schema holds what JSON does not: {cause}.",
            next_step="Give texts, numbers, lists and mappings, or the JSON text.",
        ) from cause
