"""One of several writers that upsert into the same tables at the same time; run as a script.

``JOURNAL URIS OPTIONS NAME SECONDS`` upserts, until the time is over, a few rows of keys that all
writers share or that only this one has, into one of the tables (a JSON list of URIs). Every try
is a line of the journal: the table, the keys, the value written, and how it ended.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakewright as lw
from lakewright.model.errors import CommitStateUnknown, Conflict, HistoryGone
from lakewright.model.instant import Action
from support.warm import command

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("tag", pa.string())])
SHARED = [f"shared{number}" for number in range(8)]
RETRIES = 3
#: Operations that are no writes of anybody.
SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})


@dataclass(frozen=True, slots=True)
class Try:
    """One try of a writer; ``requested`` and ``completed`` are set where it took effect."""

    table: str
    keys: tuple[str, ...]
    tag: str
    outcome: str
    requested: str = ""
    completed: str = ""
    attempts: int = 1


def contend(
    tables: Sequence[lw.Table], name: str, seconds: float, log: Any, retry: int = RETRIES
) -> None:
    """Write until the time is over; ``log`` takes each ``Try``."""
    chance = random.Random(name)
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        table = chance.choice(tables)
        own = [f"{name}-{chance.randrange(20)}" for _ in range(chance.randrange(3))]
        keys = {*own, *chance.sample(SHARED, chance.randrange(3))} or {f"{name}-0"}
        number += 1
        log(one(table, tuple(sorted(keys)), f"{name}:{number}", retry))


def one(table: lw.Table, keys: tuple[str, ...], tag: str, retry: int) -> Try:
    rows = [{"id": key, "p": f"p{len(key) % 2}", "tag": tag} for key in keys]
    try:
        result = table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA), retry=retry)
    except Conflict:
        return Try(table.path, keys, tag, "conflict", attempts=retry + 1)
    except CommitStateUnknown:
        return Try(table.path, keys, tag, "unknown")
    done = result.instant
    assert done is not None
    return Try(table.path, keys, tag, "done", done.requested, done.completed, result.attempts)


def read_journal(path: Path) -> list[Try]:
    lines = path.read_text().splitlines()
    return [Try(**{**values, "keys": tuple(values["keys"])}) for values in map(json.loads, lines)]


def processes(
    tables: Sequence[lw.Table], options: Mapping[str, str], count: int, seconds: float, into: Path
) -> list[Try]:
    """Let processes write at the same time; return all their tries."""
    uris, settings = json.dumps([t.path for t in tables]), json.dumps(dict(options))
    journals = [into / f"journal{number}" for number in range(count)]
    writers = [
        subprocess.Popen(
            [*command(__file__), journal, uris, settings, f"w{number}", str(seconds)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, journal in enumerate(journals)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            errors = writer.communicate(timeout=seconds * 3 + 120)[1]
            assert writer.returncode == 0, errors
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    return [tried for journal in journals for tried in read_journal(journal)]


def judge(table: lw.Table, tries: Sequence[Try], hudi_rows: Any = None) -> Counter[str]:
    """Check that every write that took effect is there, in order, and no other."""
    mine = [t for t in tries if t.table == table.path]
    assert not [t for t in mine if t.outcome == "unknown"]
    done = sorted((t for t in mine if t.outcome == "done"), key=lambda t: t.completed)
    rows = table.scan().to_arrow().to_pylist()
    found = Counter(row["id"] for row in rows)
    twice = [key for key, count in found.items() if count > 1]
    assert not twice, f"duplicate keys: {twice}"
    expected: dict[str, str] = {}
    for write in done:
        expected |= dict.fromkeys(write.keys, write.tag)
    held = {row["id"]: row["tag"] for row in rows}
    lost = {k: (v, held.get(k)) for k, v in expected.items() if held.get(k) != v}
    assert held == expected, f"lost: {lost}; strange: {held.keys() - expected.keys()}"
    _judge_history(table, done)
    if hudi_rows is not None:
        assert {row["id"]: row["tag"] for row in hudi_rows(table.path)} == expected
    conflicts = sum(t.attempts for t in mine) - len(done)
    return Counter(writes=len(done), conflicts=conflicts, given_up=len(mine) - len(done))


def _judge_history(table: lw.Table, done: Sequence[Try]) -> None:
    completed = [t.completed for t in done]
    assert len(set(completed)) == len(completed), "completion times are not unique"
    view = table.timeline.with_history()
    times = [i.requested for i in view.data()]
    assert times == sorted(set(times)), "the history is not in order"
    instants = {
        i.requested: i.completed
        for i in view.data()
        if view.commit_metadata(i).operation not in SERVICES
    }
    missing = [t for t in done if instants.get(t.requested) != t.completed]
    assert not missing, f"not on the timeline: {missing[:3]}"
    assert len(instants) == len(done), "the timeline holds writes that nobody made"
    for write in done[:: max(1, len(done) // 10)]:
        try:
            then = table.scan(as_of=write.requested).to_arrow().to_pylist()
        except HistoryGone:
            assert table.timeline.by_action(Action.CLEAN), "nothing was cleaned"
            continue
        shown = {row["id"]: row["tag"] for row in then}
        assert {shown.get(key) for key in write.keys} == {write.tag}, write


def main() -> None:
    journal, uris, options, name, seconds = sys.argv[1:]
    settings: Mapping[str, str] = json.loads(options)
    tables = [lw.open_table(uri, options=settings) for uri in json.loads(uris)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    with Path(journal).open("w") as file:

        def log(tried: Try) -> None:
            values = {field: getattr(tried, field) for field in Try.__dataclass_fields__}
            file.write(json.dumps(values) + "\n")

        contend(tables, name, float(seconds), log)


if __name__ == "__main__":
    main()
