"""How fast tables are read, beside plain parquet, real Hudi and Iceberg.

    ./dev bench read [--rows 2000000 8000000] [--rounds 9] [--write]

All variants of a row read the same files (or the same rows), in one process, by turns; a figure
is the median over the rounds, from opening the table to the result. The reference runs twice in
every round: the middle half of its second runs over its first ones is the spread of a run against
itself. ``--write`` puts the tables into ``docs/benchmarks.md``.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

import lakewright as lw
from interleaved import Timings, measure
from pages import machine, put
from peers import figures_of, peers
from read_tables import SCHEMA, Tables, tables

ROOT = Path(__file__).parents[1]
JARS = ("hudi-spark3.5-bundle_2.12-1.2.0.jar", "iceberg-spark-runtime-3.5_2.12-1.11.0.jar")
HUDI_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result: a figure, what it may be at most, and how sure it is."""

    what: str
    seconds: float
    ratio: float
    spread: tuple[float, float]
    most: float | None = None

    @property
    def verdict(self) -> str:
        if self.most is None:
            return ""
        if self.ratio <= self.most:
            return f"≤ {self.most:g}: yes"
        inside = self.ratio <= self.most * self.spread[1]
        return f"≤ {self.most:g}: {'inside the spread' if inside else 'NO'}"

    def cells(self) -> list[str]:
        low, high = self.spread
        band = f"{low:.2f} to {high:.2f}"
        return [self.what, f"{self.seconds:.2f}", f"{self.ratio:.2f}", band, self.verdict]


MOST = {"ours, columns known": 2.2, "ours, general": 3.0}


def spark_rows(found: dict[str, Any]) -> Iterator[Row]:
    """Turn the figures of one Spark into lines."""
    for rows, size in found["sizes"].items():
        millions = f"{int(rows) / 1e6:g}M rows"
        if "cow" in size:
            yield from _lines(size["cow"], f"copy-on-write, {millions}", {"ours": 1.05})
        for mode in ("commit", "event"):
            if mode in size:
                name = f"merge-on-read, {mode} time, {millions}"
                yield from _lines(size[mode], name, MOST)
    if "planning" in found:
        files = f"planning {found['planning']['files']:,} files"
        yield from _lines(found["planning"], files, {"to_spark": 1.2})


def _lines(figures: dict[str, Any], name: str, most: dict[str, float]) -> Iterator[Row]:
    for variant, figure in figures["rows"].items():
        yield Row(
            f"{name}: {variant}",
            figure["median"],
            figure["ratio"],
            tuple(figures["spread"]),
            most.get(variant),
        )


def remarks(found: dict[str, Any]) -> Iterator[str]:
    """Say what a table of ratios cannot."""
    for rows, size in found["sizes"].items():
        if "cow" in size:
            ours, theirs = size["cow"]["partitions"]
            same = "the same" if size["cow"]["same_plan"] else "NOT the same"
            yield (
                f"{int(rows):,} rows, copy-on-write: {same} scan nodes, pushed filters and columns "
                f"in `explain` as `spark.read.parquet`; {ours} partitions against {theirs}."
            )
        for mode in ("commit", "event"):
            if "Hudi" in size.get(mode, {}).get("rows", {}):
                lines = size[mode]["rows"]
                factors = [lines["Hudi"]["median"] / lines[name]["median"] for name in MOST]
                held = "yes" if min(factors) >= HUDI_FACTOR else "NO"
                yield (
                    f"{int(rows):,} rows, {mode} time: {factors[0]:.1f} and {factors[1]:.1f} times "
                    f"as fast as Hudi's own reader (columns known, general; at least "
                    f"{HUDI_FACTOR:g}: {held})."
                )
    if "planning" in found:
        own = found["planning"]["rows"]["our own planning"]["median"]
        yield (
            f"Our own planning of {found['planning']['files']:,} files took {own:.2f} s "
            f"(below 1: {'yes' if own < 1 else 'NO'})."
        )
    restored = "were put back" if found["settings_restored"] else "were NOT put back"
    yield f"Session settings that planning changed {restored}."


def local_rows(made: Tables, rounds: int) -> Iterator[Row]:
    """Measure a full scan without Spark against pyarrow's own read of the same files."""
    names = list(SCHEMA.names)
    files = [str(p) for p in sorted(made.base_rows.rglob("*.parquet"))]

    def pyarrows() -> object:
        return sum(b.num_rows for b in ds.dataset(files).to_batches(columns=names))

    def ours() -> object:
        return sum(b.num_rows for b in lw.open_table(made.copy_on_write).scan().to_batches())

    variants: dict[str, Callable[[], object]] = {"pyarrow": pyarrows, "ours": ours}
    timings: Timings = measure(variants, "pyarrow", rounds)
    for name in variants:
        most = 1.2 if name == "ours" else None
        yield Row(
            f"full scan, {made.rows / 1e6:g}M rows: {name}",
            timings.median(name),
            timings.ratio(name),
            timings.spread(),
            most,
        )


def in_spark(python: str, options: argparse.Namespace, jars: list[Path]) -> dict[str, Any]:
    """Run the Spark part in another interpreter, and return its figures."""
    given = ["--folder", options.folder, "--rounds", options.rounds, "--files", options.files]
    given += ["--rows", *options.rows, "--only", *options.only]
    return figures_of(python, "read_spark.py", [*given, *(["--jars", *jars] if jars else [])])


def table(rows: list[Row], reference: str) -> list[str]:
    head = ["what", "seconds", f"times {reference}", "the reference against itself", "target"]
    lines = [head, ["---"] * len(head), *(row.cells() for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def report(sections: list[tuple[str, list[str]]]) -> str:
    text = [machine()]
    for title, lines in sections:
        text += ["", f"### {title}", "", *lines]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 8_000_000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=ROOT / ".dev" / "bench")
    parser.add_argument("--only", nargs="*", default=["local", "cow", "mor", "planning"])
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    sections: list[tuple[str, list[str]]] = []
    made = [tables(options.folder, rows) for rows in options.rows]
    if "local" in options.only:
        rows = [row for each in made for row in local_rows(each, options.rounds)]
        sections.append(("Without Spark", table(rows, "pyarrow's own read")))
    python, jars = peers(JARS)
    for interpreter, with_jars in ((python, jars), (sys.executable, [])):
        if interpreter is None:
            continue
        found = in_spark(interpreter, options, with_jars)
        beside = f", beside {' and '.join(found['peers'])}" if found["peers"] else ""
        lines = table(list(spark_rows(found)), "the reference")
        lines += ["", *(f"- {line}" for line in remarks(found))]
        sections.append((f"Spark {found['spark']}{beside}", lines))
    text = report(sections)
    print(text)
    if options.write:
        put("read", text)


if __name__ == "__main__":
    main()
