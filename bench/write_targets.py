"""What writing is held to: each target as a line that says whether it was met."""

from collections.abc import Iterator
from typing import Any

Figures = dict[str, dict[str, Any]]


def judge_spark(found: dict[str, Any]) -> Iterator[str]:
    """Hold the figures of one Spark against the targets."""
    limit = 1.3 if found["spark"].startswith("3.") else 1.4
    first = next(iter(found["sizes"].values()))
    bulk: Figures = first["bulk"]
    plain = bulk["plain parquet"]
    for kind in ("COW", "MOR"):
        ours = bulk[f"ours {kind}"]
        for unit in ("wall", "cpu"):
            yield _most(f"bulk insert {kind}, {unit}, plain parquet", ours, plain, limit, unit)
        if (hudi := bulk.get(f"Hudi {kind}")) is not None:
            yield _faster(f"bulk insert {kind}: Hudi", ours, hudi, 3)
        if (delta := bulk.get("Delta")) is not None:
            yield _most(f"bulk insert {kind}, wall, Delta", ours, delta, 1.0)
        sizes = first["bytes"]
        share = sizes[f"ours {kind}"] / sizes["plain parquet"]
        yield _line(f"bytes of a {kind} table, plain parquet", share, share <= 1.2, "at most 1.2")
    for step in ("upsert 1%", "upsert 10%"):
        figures: Figures = first[step]
        yield from _upsert(step, figures)
    yield from _growth(found["sizes"])
    small = found.get("tiny", {})
    if {"ours MOR", "Hudi MOR"} <= small.keys():
        ours, hudi = small["ours MOR"], small["Hudi MOR"]
        yield _most("commits of 1,000 rows, Hudi's", ours, hudi, 0.2)
        share = ours["last"] / ours["first"]
        yield _line("the last small commits, the first ones", share, share <= 1.2, "flat: 1.2")


def _upsert(step: str, figures: Figures) -> Iterator[str]:
    for kind in ("COW", "MOR"):
        ours, shuffled = figures[f"ours {kind}"], figures[f"ours {kind} by shuffle"]
        hudi = figures.get(f"Hudi {kind}")
        if hudi is not None:
            yield _faster(f"{step} {kind}: Hudi", ours, hudi, 5)
            yield _faster(f"{step} {kind} by shuffle: Hudi", shuffled, hudi, 3)
    for peer in ("plain parquet", "Delta", "Iceberg COW"):
        if peer in figures:
            yield _most(f"{step} COW, wall, {peer}", figures["ours COW"], figures[peer], 1.0)
    if "Iceberg MOR" in figures:
        yield _faster(f"{step} MOR: Iceberg MOR", figures["ours MOR"], figures["Iceberg MOR"], 2)


def judge_local(alone: dict[str, Any]) -> Iterator[str]:
    """Hold the figures without a JVM against the targets."""
    first = next(iter(alone["sizes"].values()))
    bulk: Figures = first["bulk"]
    for kind in ("COW", "MOR"):
        ours = bulk[f"ours {kind}"]
        yield _most(f"bulk insert {kind}, delta-rs", ours, bulk["delta-rs"], 1.0)
        yield _most(f"bulk insert {kind}, DuckDB's COPY", ours, bulk["DuckDB, plain parquet"], 2.0)
    for step in ("upsert 1%", "upsert 10%"):
        figures: Figures = first[step]
        delta = figures["delta-rs"]
        yield _most(f"{step} COW, delta-rs", figures["ours COW"], delta, 1.0)
        yield _most(f"{step} MOR, delta-rs", figures["ours MOR"], delta, 1 / 3)
    yield from _growth(alone["sizes"])


def judge_small(alone: dict[str, Any], spark: dict[str, Any]) -> Iterator[str]:
    """Hold small commits without a JVM against those of Hudi."""
    hudi = spark.get("tiny", {}).get("Hudi MOR")
    for name, figure in alone.get("tiny", {}).items():
        if hudi is not None:
            count = int("".join(c for c in name.partition(",")[2] if c.isdigit()))
            each = figure["wall"] / count / hudi["wall"]
            yield _line(f"without Spark: {name}, Hudi's", each, each <= 0.1, "at most 0.1")


def judge_memory(found: dict[str, Any]) -> Iterator[str]:
    """Hold the peaks of memory against half of Hudi's."""
    for kind in ("COW", "MOR"):
        ours, hudi = found[f"ours {kind}"], found[f"Hudi {kind}"]
        for way in ours:
            for step in ours[way]:
                share = ours[way][step] / hudi[way][step]
                what = f"{way} memory, {step} {kind}, Hudi's"
                yield _line(what, share, share <= 0.5, "at most 0.5")


def _growth(sizes: dict[str, Any]) -> Iterator[str]:
    if len(sizes) < 2:
        return
    (small, few), (large, many) = list(sizes.items())[:2]
    times = int(large) / int(small)
    for step, figures in few.items():
        for name, figure in figures.items() if step != "bytes" else ():
            if name.startswith("ours") and name in many[step]:
                grown = many[step][name]["wall"] / figure["wall"]
                held = grown <= times * 1.1
                yield _line(f"{step}, {name}: {times:g} times the rows", grown, held, f"{times:g}")


def _most(
    what: str, ours: dict[str, Any], other: dict[str, Any], limit: float, unit: str = "wall"
) -> str:
    share = ours[unit] / other[unit]
    return _line(what, share, share <= limit, f"at most {limit:.2g}")


def _faster(what: str, ours: dict[str, Any], other: dict[str, Any], factor: float) -> str:
    times = other["wall"] / ours["wall"]
    return _line(f"{what} takes", times, times >= factor, f"at least {factor:g}")


def _line(what: str, share: float, held: bool, target: str) -> str:
    return f"- {what}: {share:.2f} times ({target}: {'yes' if held else 'NO'})."
