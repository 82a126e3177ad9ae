"""A Spark cluster whose tasks fail, are run twice, and lose their machine."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.format.hudi.file_names import base_file, log_file
from support.cluster_writes import ROWS
from support.spark_cluster import cluster, environment

pytestmark = pytest.mark.spark

SCRIPT = Path(__file__).parents[1] / "support" / "cluster_writes.py"


def test_one_commit_each_and_no_stray_file(tmp_path: Path) -> None:
    schema = pa.schema({"key": pa.string(), "day": pa.string(), "said": pa.string()})
    table = lw.create_table(
        tmp_path / "table", schema=schema, key="key", partition_by=["day"], buckets=4
    )
    with cluster(tmp_path) as running:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), running.url, str(tmp_path), str(running.workers[1].pid)],
            capture_output=True,
            text=True,
            env=dict(environment(tmp_path)),
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert results["fail"] == {"inserted": ROWS, "updated": 0, "files": 12}
    assert results["sleep"] == results["kill"] == {"inserted": 0, "updated": ROWS, "files": 12}
    marks = Counter(mark.name.partition("-")[0] for mark in (tmp_path / "marks").iterdir())
    assert marks["fail"] > 1  # every task failed once
    table = lw.open_table(tmp_path / "table")
    rows = table.scan(columns=["key", "said"]).to_arrow()
    assert rows.num_rows == ROWS
    assert len(set(rows["key"].to_pylist())) == ROWS
    assert set(rows["said"].to_pylist()) == {"kill"}
    commits = [i for i in table.timeline.completed() if i.action == "commit"]
    assert len(commits) == 3
    named = {
        stat.path
        for commit in commits
        for stats in table.timeline.commit_metadata(commit).write_stats.values()
        for stat in stats
    }
    root = tmp_path / "table"
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and (base_file("", path.name) or log_file("", path.name))
    }
    assert found == named
    assert not list((root / ".hoodie" / ".temp").rglob("*.marker.*"))
    assert table.fsck(deep=True).ok
