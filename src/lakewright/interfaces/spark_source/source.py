"""``spark.read.format("lakewright").load(path)`` on Spark 4.

Spark's own pushdown into Python data sources returns wrong rows in some releases and prunes no
columns in any, so that neither is used: the options ``columns`` and ``where`` do that work.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.engine.spark.schema import nullable, to_spark_schema, worker_form
from lakewright.engine.spark.tasks import bundle_count, pack_tasks
from lakewright.engine.spark.worker import Shared, pack, read_packed
from lakewright.model.errors import InvalidOption
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state

_KNOWN = ("path", "columns", "where", "as_of", "mode", "start", "end", "meta")
#: Options with this prefix go to the storage, the prefix left out.
_STORAGE = "storage."


class LakewrightSource(DataSource):
    """A table by its path. Options: columns, where, as_of, mode, start, end, meta."""

    @classmethod
    def name(cls) -> str:
        """The word that goes into ``format(...)``."""
        return "lakewright"

    def schema(self) -> StructType:
        """Return the columns of the rows."""
        return to_spark_schema(nullable(plan_from_options(self.options).schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the table as it stands now."""
        return LakewrightReader(plan_from_options(self.options))


def plan_from_options(options: Mapping[str, str]) -> ScanPlan:
    """Plan the scan that the options of a Spark reader describe."""
    given = {key.lower(): value for key, value in options.items()}
    storage = {k.removeprefix(_STORAGE): v for k, v in given.items() if k.startswith(_STORAGE)}
    unknown = sorted(k for k in given if k not in _KNOWN and not k.startswith(_STORAGE))
    if unknown:
        raise InvalidOption(
            f"unknown option {', '.join(unknown)}.",
            next_step=f"Known: {', '.join(_KNOWN)}, and {_STORAGE}* for the storage.",
            options=unknown,
        )
    if "path" not in given:
        raise InvalidOption(
            "no path to read.", next_step='Write spark.read.format("lakewright").load(path).'
        )
    state = open_state(open_storage(given["path"], storage))
    return plan_scan(state, _request(given))


def _request(given: Mapping[str, str]) -> ScanRequest:
    columns = given.get("columns")
    return ScanRequest(
        where=given.get("where"),
        columns=None if columns is None else tuple(c.strip() for c in columns.split(",")),
        meta=_flag(given, "meta"),
        mode=_mode(given),
        as_of=given.get("as_of"),
        start=given.get("start"),
        end=given.get("end"),
    )


def _mode(given: Mapping[str, str]) -> ReadingMode:
    told = given.get("mode", ReadingMode.SNAPSHOT.value).lower()
    try:
        return ReadingMode(told)
    except ValueError as cause:
        raise InvalidOption(
            f"mode {told!r} is no reading mode.",
            next_step=f"Allowed: {', '.join(mode.value for mode in ReadingMode)}.",
            value=told,
        ) from cause


def _flag(given: Mapping[str, str], name: str) -> bool:
    told = given.get(name, "false").lower()
    if told not in ("true", "false"):
        raise InvalidOption(
            f"{name} is {told!r}.", next_step="Allowed: true, false.", option=name, value=told
        )
    return told == "true"


@dataclass
class Bundle(InputPartition):
    """The slices that one Spark task reads, packed."""

    packed: bytes


class LakewrightReader(DataSourceReader):
    """Reads the slices of one plan; what travels to the workers is small and packed."""

    def __init__(self, plan: ScanPlan) -> None:
        self._shared = pack(Shared(plan.spec, worker_form(plan.schema)))
        sizes = [task.size for task in plan.tasks]
        count = bundle_count(sizes, os.cpu_count() or 1, plan.spec)
        bundles = pack_tasks(plan.tasks, count, lambda task: task.size)
        self._bundles = [pack(bundle) for bundle in bundles]

    def partitions(self) -> Sequence[InputPartition]:
        """Return the bundles, one per Spark task; Spark needs at least one."""
        return [Bundle(packed) for packed in self._bundles] or [Bundle(pack(()))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401  (Spark's own port)
        """Stream the rows of one bundle."""
        return read_packed(self._shared, partition.packed)
