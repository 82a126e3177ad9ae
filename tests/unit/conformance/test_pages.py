"""What the conformance pages name exists: the objects, and the tests that show them."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs" / "conformance").glob("*.md"))
ROW = re.compile(r"^\| (?P<theirs>.+?) \| (?P<ours>.+?) \| (?P<test>.+?) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
#: Every class, method and argument that the pseudo-code of the Table Spec API has.
TABLE_SPEC = """
    TableId databaseName tableName TableDef TableMeta tableId basePath schema InternalSchema
    tableType HoodieTableType HoodieFileSlice HoodieFileGroupId fileGroupId baseFilePath
    logFilesPaths HoodieLogFile HoodieFileGroup id timeline HoodieTimeline fileSlices
    HoodieInstant PartitionDescriptor partitionPath partitionColumnValues PartitionSnapshot
    descriptor latestInstant PartitionIncrementalSnapshot ReadingMode SNAPSHOT
    SNAPSHOT_READ_OPTIMIZED INCREMENTAL CDC Expression children UnaryExpression child
    BinaryExpression left right Predicate TimelineView findLatestCompletedActionAt RecordIndex
    tag HoodiePairData HoodieKey HoodieData HoodieRecordLocation FileIndex listFilesAt
    listFilesBetween instant filters from to FileSliceReader project pushDownFilters readingMode
    open HoodieRecord Table getLatestSnapshot getSnapshot upsert bulkInsert HoodieEngineContext
    context instantTime records HoodieWriteMetadata delete expression scheduleCompaction
    HoodieCompactionPlan extraProperties scheduleClustering HoodieClusteringPlan
    scheduleCleaning HoodieCleanerPlan compact plan cluster HoodieCatalog createTable
    TableDescriptor HoodieTable loadTable dropTable cascade HoodieHiveRecord joinWith
    rewriteRecord HoodieRecordMerger getMergingStrategy merge getRecordType
"""
HEADS = {"specification", "---"}


def rows(page: Path) -> list[tuple[str, str, str]]:
    found = [m.group("theirs", "ours", "test") for m in ROW.finditer(page.read_text())]
    return [row for row in found if row[0] not in HEADS]


def resolve(name: str) -> object:
    """Import the longest prefix that is a module, and follow the attributes after it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            value = getattr(value, attribute)
        return value
    raise AttributeError(name)


def functions_in(path: Path) -> set[str]:
    return {n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_what_exists(page: Path) -> None:
    named = rows(page)
    assert len(named) > 10
    for theirs, ours, test in named:
        for name in QUOTED.findall(ours):
            if name.startswith("lakewright."):  # the rest are words, such as an argument's name
                resolve(name)
        for node in QUOTED.findall(test):
            file, _, function = node.partition("::")
            assert function in functions_in(ROOT / file), f"{theirs}: no test {node}"
        shown = test != "–" or ours in ("*table services*", "Arrow, always")  # noqa: RUF001
        assert shown, f"{theirs} is shown by nothing"


def test_the_page_of_the_table_spec_names_all_of_it() -> None:
    page = ROOT / "docs" / "conformance" / "table-spec.md"
    named = " ".join(theirs for theirs, _, _ in rows(page))
    words = frozenset(re.findall(r"\w+", named))
    assert not [name for name in TABLE_SPEC.split() if name not in words]


def test_an_invented_name_is_found_out() -> None:
    with pytest.raises(AttributeError):
        resolve("lakewright.model.table.TableIdentity")
