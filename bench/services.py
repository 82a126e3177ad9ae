"""How fast table services run, beside real Hudi and Iceberg on Spark 3.5, in one run.

    ./dev bench services [--rows 2000000] [--rounds 3] [--only compaction] [--write]

All variants of a step start from tables of the same rows and must leave the same rows; each runs
once per round, by turns, in one process. A figure is the median over the rounds, wall / processor
seconds of the whole process tree. A compaction is scheduled and carried out. ``--write`` puts the
tables into ``docs/benchmarks.md``.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import services_clean
import services_cluster
from pages import put
from peers import figures_of, peers

ROOT = Path(__file__).parents[1]
JARS = ("hudi-spark3.5-bundle_2.12-1.2.0.jar", "iceberg-spark-runtime-3.5_2.12-1.11.0.jar")
#: By part: the peer, and how many times faster ours must be.
TARGETS = {"compaction": {"Hudi": 5.0, "Iceberg": 1.0}, "cleaning": {"Hudi": 5.0}}

#: The part that needs no peer.
CLUSTERING = "clustering"


def in_spark(python: str, options: argparse.Namespace, jars: list[Path]) -> dict[str, Any]:
    """Run the Spark part in another interpreter, and return its figures."""
    parts = [part for part in options.only if part != CLUSTERING]
    given = ["--folder", options.folder, "--rounds", options.rounds, "--rows", *options.rows]
    return figures_of(python, "services_spark.py", [*given, "--only", *parts, "--jars", *jars])


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Turn figures into a table: wall / processor seconds, and how ours compare."""
    yield "| service | variant | wall s | CPU s | times ours, wall | CPU | wall, range | rounds |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for rows, parts in found["sizes"].items():
        for part, figures in parts.items():
            ours = figures["ours"]
            for name, figure in figures.items():
                wall, cpu = (f"{figure[unit] / ours[unit]:.2f}" for unit in ("wall", "cpu"))
                yield (
                    f"| {part}, {int(rows) / 1e6:g}M rows | {name} | {figure['wall']:.2f} | "
                    f"{figure['cpu']:.2f} | {wall} | {cpu} | "
                    f"{figure['least']:.2f} to {figure['most']:.2f} | {figure['rounds']} |"
                )


def judge(found: dict[str, Any]) -> Iterator[str]:
    """Hold the figures against the targets, a line each."""
    for rows, parts in found["sizes"].items():
        for part, figures in parts.items():
            for peer, least in TARGETS.get(part, {}).items():
                if peer in figures:
                    times = figures[peer]["wall"] / figures["ours"]["wall"]
                    met = "met" if times >= least else "MISSED"
                    yield (
                        f"- {met}: {part}, {int(rows) / 1e6:g}M rows, {times:.1f} times as fast "
                        f"as {peer} (at least {least:g})"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=ROOT / ".dev" / "bench")
    parser.add_argument("--only", nargs="*", default=[*TARGETS, CLUSTERING])
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    python, jars = peers(JARS)
    if python is None:
        raise SystemExit("there is no environment with PySpark 3.5 on this machine")
    found = in_spark(python, options, jars)
    alone = [*services_clean.lines()] if "cleaning" in options.only else []
    if CLUSTERING in options.only:
        alone += ["", *services_cluster.lines()]
    page = "\n".join([*lines(found), "", *judge(found), "", *alone])
    print(page)
    if options.write:
        put("services", page)


if __name__ == "__main__":
    main()
