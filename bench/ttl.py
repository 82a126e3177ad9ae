"""What the retention of partitions costs on a table with very many of them.

    ./dev bench ttl --partitions 100000 --files 10 [--write]

Builds a table of empty base files as ``bench/listing.py`` does, and measures, part by part:

- ``first``: gathering the statistics by listing, in turns with ``os.scandir`` and ``stat`` over
  the same tree; the promise is a factor of two at most;
- ``refresh``: bringing them up to date after commits that wrote to a few partitions each; the
  promise is two seconds after a hundred commits;
- ``plan``: a plan over statistics that are up to date, by age (nothing has expired, everything
  has) and by number (nearly all are too many, nearly none is); the promise is one second;
- ``memory``: the most that a process holds that does any of these, beside what it holds before;
- ``hudi``: the same retention on 2,000 partitions by real Hudi's ``run_ttl`` and by ours, planned,
  pinned and applied, on Spark 3.5 by turns.

Each part is a function of ``Bench`` that returns figures; ``PARTS`` names them.
"""

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lakewright as lw
from lakewright.format.hudi.metadata.commit import (
    CommitMetadata,
    WriteStat,
    decode_commit,
    encode_commit,
)
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.ttl.options import DAYS
from lakewright.lifecycle.ttl.statistics import PartitionStats, gather, verify
from lakewright.lifecycle.ttl.statistics_store import STATISTICS_FOLDER
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state
from listing import SCHEMA, bare_walk, build
from pages import put
from peers import figures_of, peers
from steps import Step, by_turns

#: The commits of the refresh come after those of the tree.
_DAY = "20261116"
#: Bytes of every file that they write.
_WRITTEN = 100
#: Clocks by which nothing of the tree has expired, and everything has.
SOON = dt.datetime(2026, 11, 17, tzinfo=dt.UTC)
LATE = dt.datetime(2027, 11, 17, tzinfo=dt.UTC)
#: Partitions that are kept by their number, or are too many.
COUNTED = 100
#: What is done by processes whose memory is looked at.
HELD = ("refresh", "plan", "first")
JARS = ("hudi-spark3.5-bundle_2.12-1.2.0.jar",)
PEER_PARTITIONS = 2_000


@dataclass(frozen=True)
class Bench:
    """A tree, and how it is measured."""

    root: Path
    partitions: int
    rounds: int
    commits: int
    touched: int

    @property
    def state(self) -> TableState:
        """The table, opened again."""
        return open_state(open_storage(str(self.root)))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Write the commits whose refresh is measured; return the partitions they wrote to.

        The statistics of before lie there when this returns, and none that know the commits.
        """
        take_back(self.root)
        forget(self.root)
        gather(self.state)
        width = max(self.partitions // (self.commits * self.touched), 1)
        names: set[str] = set()
        for number in range(self.commits):
            first = number * self.touched
            chosen = [
                f"dt={(first + i) * width % self.partitions:06d}" for i in range(self.touched)
            ]
            names.update(chosen)
            commit(self.root, number, chosen)
        return tuple(sorted(names))


def commit(root: Path, number: int, partitions: list[str]) -> None:
    """Write a commit with a new group in each of the partitions."""
    instant = f"{_DAY}{number:09d}"
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for partition in partitions:
        file_id = f"{uuid.uuid4()}-0"
        path = f"{partition}/{file_id}_0-3-0_{instant}.parquet"
        (root / path).write_bytes(b"x" * _WRITTEN)
        stats[partition] = (
            WriteStat(
                file_id=file_id,
                path=path,
                prev_commit="null",
                num_writes=1,
                num_inserts=1,
                partition_path=partition,
                total_write_bytes=_WRITTEN,
                file_size_in_bytes=_WRITTEN,
            ),
        )
    body = CommitMetadata(stats, extra={"schema": SCHEMA}, operation="INSERT")
    file = root / ".hoodie" / "timeline" / f"{instant}_{instant}.commit"
    file.write_bytes(encode_commit(body, 2, replace=False))


def take_back(root: Path) -> None:
    """Remove what an earlier run on the same tree committed."""
    for file in (root / ".hoodie" / "timeline").glob(f"{_DAY}*"):
        for stats in decode_commit(file.read_bytes(), file.name).write_stats.values():
            for stat in stats:
                (root / (stat.path or "")).unlink(missing_ok=True)
        file.unlink()


def forget(root: Path) -> None:
    """Remove all statistics."""
    shutil.rmtree(root / STATISTICS_FOLDER, ignore_errors=True)


def forget_newest(root: Path) -> None:
    """Remove the statistics that know the commits of the refresh."""
    for file in (root / STATISTICS_FOLDER).glob(f"{_DAY}*.json"):
        file.unlink()


def first(bench: Bench) -> dict[str, Any]:
    """Gathering by listing beside the bare walk."""
    seen: dict[str, int] = {}

    def walk() -> None:
        seen["files"] = bare_walk(str(bench.root))

    def statistics() -> None:
        seen["partitions"] = len(gather(bench.state, rebuild=True).partitions)

    figures: dict[str, Any] = by_turns(
        {
            "walk": Step(lambda: None, walk, lambda: None),
            "statistics": Step(lambda: forget(bench.root), statistics, lambda: None),
        },
        bench.rounds,
    )
    figures["ratio"] = figures["statistics"]["wall"] / figures["walk"]["wall"]
    return {**figures, **seen}


def refresh(bench: Bench) -> dict[str, Any]:
    """Bringing statistics up to date, and asking for them when nothing is new."""
    touched = bench.written
    kept: list[PartitionStats] = []

    def run() -> None:
        kept[:] = [gather(bench.state)]

    def grown() -> int:
        return sum(kept[0].partitions[path].bytes for path in touched)

    figures: dict[str, Any] = by_turns(
        {"refresh": Step(lambda: forget_newest(bench.root), run, grown)}, bench.rounds
    )
    figures |= by_turns({"nothing new": Step(lambda: None, run, grown)}, bench.rounds)
    expected = bench.commits * bench.touched * _WRITTEN
    if grown() != expected:
        raise SystemExit(f"{grown()} bytes were counted, {expected} are there")
    wrong = verify(bench.state)
    if wrong:
        raise SystemExit(f"{len(wrong)} differences, such as: {wrong[0]}")
    size = sum(f.stat().st_size for f in (bench.root / STATISTICS_FOLDER).glob(f"{_DAY}*"))
    return {**figures, "commits": bench.commits, "touched": len(touched), "file_bytes": size}


def plan(bench: Bench) -> dict[str, Any]:
    """Planning over statistics that are up to date, by age and by number."""
    assert bench.written
    gather(bench.state)
    found: list[Plan] = []

    def planned(now: dt.datetime) -> Step:
        def run() -> None:
            found[:] = [planned_at(bench.root, now)]

        return Step(lambda: None, run, lambda: None)

    none, everything = planned(SOON), planned(LATE)
    figures: dict[str, Any] = by_turns({"nothing expired": none}, bench.rounds)
    figures |= by_turns({"all expired": everything}, bench.rounds)
    figures |= by_turns(
        {
            f"all but {kept:,} too many": counted(bench.root, kept)
            for kept in (COUNTED, bench.partitions - COUNTED)
        },
        bench.rounds,
    )
    lw.open_table(bench.root).ttl.drop("/")
    # A small table has no more partitions than a run drops.
    left = found[0].skipped[-1].reason if found[0].skipped else ""
    return {**figures, "items": len(found[0].items), "left": left}


def counted(root: Path, kept: int) -> Step:
    """Plan by a policy of the table that keeps so many partitions."""
    table = lw.open_table(root)

    def prepare() -> None:
        table.ttl.add("/", "KEEP_BY_COUNT", kept)

    def run() -> None:
        table.ttl.preview(SOON)

    return Step(prepare, run, lambda: None)


def planned_at(root: Path, now: dt.datetime) -> Plan:
    """Plan by a policy for the whole table."""
    return lw.open_table(root).ttl.preview(now, options={DAYS.key: "30"})


def hudi(bench: Bench) -> dict[str, Any]:
    """The same retention by real Hudi and by ours, on a table of fewer partitions."""
    python, jars = peers(JARS)
    if python is None or not jars:
        return {}
    folder = Path(tempfile.mkdtemp(prefix="ttl-hudi-"))
    try:
        given = ["--folder", folder, "--partitions", PEER_PARTITIONS, "--rounds", bench.rounds]
        found = figures_of(python, "ttl_spark.py", [*given, "--jars", *jars])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**found["figures"], "spark": found["spark"]}


def memory(bench: Bench) -> dict[str, Any]:
    """What a process holds when the table is open, and the most when it has its statistics."""
    assert bench.written
    forget_newest(bench.root)
    found = {}
    for name in HELD:
        done = subprocess.run(
            [sys.executable, __file__, "--tree", str(bench.root), "--held-by", name],
            check=True,
            capture_output=True,
            text=True,
        )
        found[name] = json.loads(done.stdout)
    return found


def held_by(root: Path, name: str) -> dict[str, int]:
    """Gather in this process; return its memory before, and the most of it, in bytes."""
    state = open_state(open_storage(str(root)))
    before = _most()
    if name == "plan":
        planned_at(root, LATE)
    else:
        gather(state, rebuild=name == "first")
    return {"before": before, "most": _most()}


def _most() -> int:
    # What the system keeps as ``ru_maxrss`` would begin with the memory of the parent.
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


PARTS: Mapping[str, Callable[[Bench], dict[str, Any]]] = {
    "first": first,
    "refresh": refresh,
    "plan": plan,
    "memory": memory,
    "hudi": hudi,
}


def lines(about: Mapping[str, int], found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Turn figures into the text of the page."""
    yield f"{about['partitions']:,} partitions, {about['files']:,} files:"
    yield ""
    yield "| what | wall s | CPU s | wall, range |"
    yield "| --- | --- | --- | --- |"
    for part in ("first", "refresh", "plan"):
        for name, figure in found.get(part, {}).items():
            if isinstance(figure, dict):
                yield _row(f"{TITLES[part]}: {name}", figure)
    yield ""
    if "first" in found:
        ratio = found["first"]["ratio"]
        yield f"- {_met(ratio <= 2)}: first statistics take {ratio:.2f} times a bare walk (2)"
    if "refresh" in found:
        took, commits = found["refresh"]["refresh"]["wall"], found["refresh"]["commits"]
        yield f"- {_met(took < 2)}: a refresh after {commits} commits takes {took:.2f} s (under 2)"
    for name, figure in found.get("plan", {}).items():
        if isinstance(figure, dict):
            yield f"- {_met(figure['wall'] < 1)}: a plan, {name}, takes {figure['wall']:.2f} s (1)"
    for name, held in found.get("memory", {}).items():
        grown = (held["most"] - held["before"]) / 1e6
        yield f"- memory of a process: {name} adds {grown:.0f} MB to {held['before'] / 1e6:.0f} MB"
    peer = found.get("hudi", {})
    if peer:
        yield ""
        yield f"{PEER_PARTITIONS:,} partitions dropped on Spark {peer['spark']}, 20 days retained:"
        yield ""
        yield "| what | wall s | CPU s | wall, range |"
        yield "| --- | --- | --- | --- |"
        yield _row("ours: planned, kept, pinned, applied", peer["ours"])
        yield _row("Hudi's `run_ttl`", peer["Hudi"])
        yield ""
        yield f"- {peer['Hudi']['wall'] / peer['ours']['wall']:.1f} times as fast as Hudi"


TITLES = {"first": "first statistics", "refresh": "refresh", "plan": "plan"}


def _row(what: str, figure: Mapping[str, Any]) -> str:
    return (
        f"| {what} | {figure['wall']:.2f} | {figure['cpu']:.2f} | "
        f"{figure['least']:.2f} to {figure['most']:.2f} |"
    )


def _met(good: bool) -> str:
    return "met" if good else "MISSED"


def show(found: Mapping[str, Mapping[str, Any]]) -> None:
    for part, figures in found.items():
        for name, value in figures.items():
            if isinstance(value, dict) and "wall" in value:
                print(
                    f"{part:8} {name:12} {value['wall']:8.3f} s  cpu {value['cpu']:.3f} s  "
                    f"({value['least']:.3f}-{value['most']:.3f}, {value['rounds']} rounds)"
                )
            elif isinstance(value, dict):
                held = ", ".join(f"{k} {v / 1e6:.1f} MB" for k, v in value.items())
                print(f"{part:8} {name:12} {held}")
            else:
                print(f"{part:8} {name:12} {value:.2f}" if isinstance(value, float) else
                      f"{part:8} {name:12} {value}")  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--partitions", type=int, default=1_000)
    options.add_argument("--files", type=int, default=10)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--commits", type=int, default=100)
    options.add_argument("--touched", type=int, default=10, help="partitions per commit")
    options.add_argument("--parts", default=",".join(PARTS))
    options.add_argument("--tree", type=Path, help="use (or build) the tree here and keep it")
    options.add_argument("--held-by", choices=HELD, help=argparse.SUPPRESS)
    options.add_argument("--json", type=Path, help="write the figures here")
    options.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    given = options.parse_args()
    if given.held_by:
        print(json.dumps(held_by(given.tree, given.held_by)))
        return
    root = given.tree or Path(tempfile.mkdtemp(prefix="ttl-"))
    bench = Bench(root, given.partitions, given.rounds, given.commits, given.touched)
    try:
        if not (root / ".hoodie").exists():
            made = build(root, given.partitions, given.files, logs=False)
            print(f"built {made} files in {given.partitions} partitions")
        found = {name: PARTS[name](bench) for name in given.parts.split(",")}
        show(found)
        if given.write:
            files = found.get("first", {}).get("files", 0)
            put("ttl", "\n".join(lines({"partitions": given.partitions, "files": files}, found)))
        if given.json:
            about = {"partitions": given.partitions, "cores": os.cpu_count()}
            given.json.write_text(json.dumps({"about": about, **found}, indent=2) + "\n")
    finally:
        if given.tree is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
