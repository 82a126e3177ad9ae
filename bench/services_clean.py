"""The parts of the services benchmark that need no peer: cleaning plans and many small commits.

    ./dev python bench/services_clean.py plan --groups 100000
    ./dev python bench/services_clean.py commits --count 1000

Each runs in a process of its own, so that its memory can be told, and prints its figures as JSON.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lakewright as lw
from lakewright.actions.services.cleaning import clean, schedule_cleaning
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.write.progress import Silence
from lakewright.engine.local.executor import LocalExecutor
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep
from steps import Step

PARTITIONS = 100
#: Commits after the first, each of which rewrites the same tenth of the groups.
REWRITES = 3
SCHEMA = (
    '{"type":"record","name":"t","fields":[{"name":"id","type":["null","string"]},'
    '{"name":"p","type":["null","string"]},{"name":"n","type":["null","long"]}]}'
)
INLINE = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "10",
    "hoodie.archive.automatic": "true",
    "hoodie.compact.inline": "true",
    "lakewright.clean.grace": "0",
}


def servicing(path: Path, **options: str) -> Servicing:
    """Return what a service works with."""
    storage = open_storage(str(path), {})
    state = open_state(storage)
    given = {key.replace("__", "."): value for key, value in options.items()}
    settings = {**storage.options, **state.config.properties, **given}
    return Servicing(
        "bench",
        state,
        LocalExecutor(settings),
        StorageCommitter(storage, state.config, settings),
        StorageUpkeep(storage, state.config, settings),
        settings,
        Silence(),
    )


def skeleton(path: Path, groups: int) -> None:
    """Make a table of so many file groups: a timeline and file names, the files empty."""
    lw.create_table(path, schema="id string, p string, n bigint", key="id", partition_by=["p"])
    for number in range(PARTITIONS):
        folder = path / f"p={number}"
        folder.mkdir()
        (folder / ".hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
    for commit in range(1 + REWRITES):
        by = servicing(path).committer
        ticket = by.begin(Action.COMMIT, "UPSERT")
        stats: dict[str, list[WriteStat]] = {}
        for number in range(groups if commit == 0 else groups // 10):
            file_id, partition = f"{number:08d}-group-0", f"p={number % PARTITIONS}"
            name = f"{file_id}_0-0-{commit}_{ticket.instant}.parquet"
            (path / partition / name).touch()
            stat = WriteStat(file_id, f"{partition}/{name}", "null", partition_path=partition)
            stats.setdefault(partition, []).append(stat)
        written = {partition: tuple(found) for partition, found in stats.items()}
        by.publish(ticket, CommitMetadata(write_stats=written, extra={"schema": SCHEMA}))


def memory(what: str) -> float:
    """Return a figure of this process's memory in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:"))


def planned(path: Path) -> dict[str, Any]:
    """Plan and carry out a cleaning of everything, and say what it took."""
    work = servicing(path, hoodie__clean__commits__retained="1")
    schedule_cleaning(work, dry_run=True)  # what is loaded once does not count
    Path("/proc/self/clear_refs").write_text("5")
    held = memory("VmRSS")
    begun, cpu = time.perf_counter(), time.process_time()
    plan = schedule_cleaning(work)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    grown = memory("VmHWM") - held
    assert plan is not None
    begun = time.perf_counter()
    result = clean(work, plan.instant)
    return {
        "plan": seconds,
        "cpu": cpu,
        "grown_mb": grown,
        "files": plan.files,
        "clean": time.perf_counter() - begun,
        "deleted": result.total.files_deleted,
    }


def committed(path: Path, count: int, version: int = 9) -> dict[str, Any]:
    """Write so many small commits with services inline; medians and totals per hundred."""
    table = lw.create_table(
        path,
        schema="id string, p string, n bigint",
        key="id",
        partition_by=["p"],
        order_by="n",
        type="MERGE_ON_READ",
        buckets=4,
        version=version,
    )
    walls: list[float] = []
    cpus: list[float] = []
    for number in range(count):
        rows = [
            {"id": f"{(number * 7 + n) % 1000}", "p": str(n % 2), "n": number} for n in range(10)
        ]
        wall, cpu = time.perf_counter(), time.process_time()
        table.upsert(rows, options=INLINE)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    state = open_state(open_storage(str(path), {}))
    hundreds = range(0, count, 100)
    return {
        "median_ms": [1000 * statistics.median(walls[at : at + 100]) for at in hundreds],
        "mean_ms": [1000 * statistics.mean(walls[at : at + 100]) for at in hundreds],
        "cpu_ms": [1000 * statistics.mean(cpus[at : at + 100]) for at in hundreds],
        "active": len(state.timeline),
        "history": len(state.timeline.with_history()) - len(state.timeline),
        "data_files": sum(1 for file in path.rglob("*.parquet") if ".hoodie" not in str(file)),
    }


class Cleanings:
    """One table, cleaned by ours and by Hudi: files go, and nobody looks into them."""

    def __init__(self, spark: Any, folder: Path, groups: int = 10_000) -> None:
        self.spark = spark
        self.place = folder / "cleaning"
        self.kept = folder / "cleaning.kept"
        self.groups = groups
        self.name = ""

    def steps(self, peers: set[str]) -> dict[str, Step]:
        """Return the variants."""
        runs: dict[str, Callable[[], object]] = {"ours": self._ours}
        if "hudi" in peers:
            runs["Hudi"] = self._hudi
        return {name: Step(self._prepare, run, self._left) for name, run in runs.items()}

    def _prepare(self) -> None:
        if not self.kept.exists():
            skeleton(self.kept, self.groups)
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.kept, self.place)
        self.name = f"cleaning_{time.time_ns()}"
        self.spark.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.place}'")

    def _ours(self) -> None:
        clean(servicing(self.place, hoodie__clean__commits__retained="1"))

    def _hudi(self) -> None:
        options = "hoodie.metadata.enable=false,hoodie.embed.timeline.server=false"
        self.spark.sql(
            f"CALL run_clean(table => '{self.name}', retain_commits => 1, options => '{options}')"
        ).collect()

    def _left(self) -> int:
        return sum(1 for _ in self.place.rglob("*.parquet"))


def apart(*arguments: str) -> dict[str, Any]:
    """Run one part in a process of its own, and return its figures."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def lines(sizes: tuple[int, ...] = (10_000, 100_000), commits: int = 1000) -> Iterator[str]:
    """Run both parts and tell their figures."""
    yield "| file groups | plan s | CPU s | memory grown by | files deleted | deleting s |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for groups in sizes:
        found = apart("plan", "--groups", str(groups))
        yield (
            f"| {groups} | {found['plan']:.2f} | {found['cpu']:.2f} | {found['grown_mb']:.0f} MB | "
            f"{found['deleted']} | {found['clean']:.2f} |"
        )
    found = apart("commits", "--count", str(commits))
    yield ""
    yield "| commits | median ms | mean ms | mean CPU ms |"
    yield "| --- | --- | --- | --- |"
    for number, row in enumerate(
        zip(found["median_ms"], found["mean_ms"], found["cpu_ms"], strict=True)
    ):
        figures = " | ".join(f"{value:.0f}" for value in row)
        yield f"| {number * 100 + 1} to {number * 100 + 100} | {figures} |"
    yield ""
    yield (
        f"- after them: {found['active']} instants on the active timeline, "
        f"{found['history']} in the history"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("plan", "commits", "all"))
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--version", type=int, default=9, help="of the table that is written to")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.part == "all":
        print("\n".join(lines()))
        return
    if options.part == "plan" and options.table is not None:
        print(json.dumps(planned(options.table)))
        return
    folder = Path(tempfile.mkdtemp(prefix="lakewright-bench-"))
    try:
        if options.part == "plan":
            # Made by this process, measured by another: making it takes more memory.
            skeleton(folder / "t", options.groups)
            print(json.dumps(apart("plan", "--table", str(folder / "t"))))
        else:
            print(json.dumps(committed(folder / "t", options.count, options.version)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
