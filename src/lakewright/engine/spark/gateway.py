"""The bridge to Spark's JVM; a client of Spark Connect may be installed without one."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.sql import SparkSession
else:
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
    except ImportError:

        class Py4JError(Exception):
            """Never raised: there is no bridge."""

        class Py4JJavaError(Py4JError):
            """Never raised: there is no bridge."""


__all__ = ["Py4JError", "Py4JJavaError", "java_class"]


def java_class(spark: "SparkSession", name: str) -> Any:  # noqa: ANN401 - its members are Java's
    """Return a class of the JVM by its full name, without looking its packages up one by one."""
    from py4j.java_gateway import JavaClass

    gateway: Any = spark.sparkContext._gateway
    return JavaClass(name, gateway._gateway_client)
