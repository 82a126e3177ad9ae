"""The histories of golden tables, written again by our tasks: every state is what Hudi's was.

The recipes by which real Hudi made the tables are run a second time; their batches go through our
writer into an empty table of the same properties. After each batch all rows are compared, and
which commit each row comes from.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fixture_tables import table_names, unzip_table
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.schema import COMMIT_TIME
from lakewright.model.writing import Operation
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state
from support.task_writes import TaskTable

PLACE = Path(__file__).parent / "make_tables.py"
#: Tables whose recipes hold nothing but rows that are written and deleted.
REPLAYED = tuple(
    name
    for name in table_names("own")
    if name.startswith(("orders_", "ordered_by_", "filled_", "partial_", "latest_", "default_"))
    and not name.endswith(("_v8", "_by_0_15", "_by_1_0"))
)


def recipes() -> Any:
    found = importlib.util.spec_from_file_location("golden_make_tables", PLACE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Maker:
    """Takes the place of the one that writes through Spark."""

    def __init__(self, table: TaskTable, settings: dict[str, str]) -> None:
        self.table = table
        self.settings = {
            "hoodie.datasource.write.precombine.field": "at",
            **{f"hoodie.{k.replace('__', '.')}": v for k, v in settings.items()},
        }
        self.schema = ""
        self.windows: list[Any] = []
        self.states: list[list[str]] = []
        self.times: list[str] = []

    def put(self, rows: list[dict[str, Any]], operation: str = "upsert") -> None:
        table = pa.Table.from_pylist(rows, to_arrow_schema(self.table.schema))
        self.table.write(Operation[operation.upper()], table)
        self.times.append(self.table.instant)
        self.states.append(state_rows(self.table.state, None, self.times))


def state_rows(state: TableState, as_of: str | None, times: list[str]) -> list[str]:
    rows = []
    for batch in scan_batches(plan_scan(state, ScanRequest(meta=True, as_of=as_of))):
        for row in batch.to_pylist():
            own = {k: v for k, v in row.items() if not k.startswith("_hoodie_") or "is_del" in k}
            own["commit"] = times.index(row[COMMIT_TIME])
            rows.append(json.dumps(own, sort_keys=True, default=repr))
    return sorted(rows)


@pytest.mark.parametrize("name", REPLAYED)
def test_each_state_is_the_one_that_hudi_left(name: str, tmp_path: Path) -> None:
    model = open_state(open_storage(unzip_table("own", name, tmp_path)))
    make = recipes()
    recipe, settings = make.RECIPES[name]
    table = TaskTable(MemoryStorage(f"memory://replayed-{name}/t", {}), model=model)
    maker = Maker(table, settings)
    recipe(maker)
    times = [instant.requested for instant in model.timeline.data()]
    assert len(times) == len(maker.states)
    for number, time in enumerate(times):
        assert maker.states[number] == state_rows(model, time, times), f"batch {number}"
