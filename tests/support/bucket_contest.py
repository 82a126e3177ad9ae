"""Writers and rescales that share nothing but the table's path; a script.

``write URI NAME SECONDS`` upserts until the time is over. ``change URI NAME SECONDS`` sets rules,
rescales and undoes. ``paused URI TAG IDS PARTITION`` upserts, but stops when it has routed its
rows, just before it makes its first data file; it goes on after a line on its input.
``paused_rescale URI NUMBER`` does the same to a rescale. All print lines of JSON.
"""

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakewright as lw
from lakewright.api.table import Table
from lakewright.model.errors import Conflict, Invalid
from lakewright.storage.open import open_storage
from support.faulty_storage import Fault, FaultyStorage
from support.warm import command

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("tag", pa.string())])
PARTITIONS = ("a", "b", "c", "d,e")
KEYS = 30
RULES = ("a,2;b,5", "c,1;p=.,7", "d,4;[ab]$,3", "^,4", "p=new,6;a,1")


def start(*arguments: object) -> "subprocess.Popen[str]":
    """Run this script, with pipes to all its ends."""
    here = Path(__file__)
    paths = [str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [*command(here), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def heard(process: "subprocess.Popen[str]") -> Any:
    """The next line of a process."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return json.loads(line)


def go_on(process: "subprocess.Popen[str]") -> list[Any]:
    """Give a process its line, let it end, and return what it still had to tell."""
    out, errors = process.communicate("go\n", timeout=300)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


@dataclass(slots=True)
class Paused(FaultyStorage):
    """Stops before the first data file is made, until a line comes."""

    waited: bool = False

    def _begin(self, verb: str, path: str) -> Fault | None:
        data = path.startswith("p=") and not path.endswith(".hoodie_partition_metadata")
        with self._lock:
            if not self.waited and data and verb in {"writer", "create", "write"}:
                self.waited = True
                say("waiting")
                sys.stdin.readline()
        return None


def put(table: Table, tag: str, ids: list[str], partition: str) -> dict[str, Any]:
    """Upsert, and tell how it went."""
    rows = [{"id": i, "p": partition, "tag": tag} for i in ids]
    told = {"tag": tag, "ids": ids, "partition": partition}
    try:
        done = table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA), retry=0).instant
    except Conflict as conflict:
        return {**told, "outcome": "conflict", "why": str(conflict)}
    assert done is not None
    return {**told, "outcome": "done", "completed": done.completed}


def write(table: Table, name: str, seconds: float) -> None:
    chance = random.Random(name)
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number += 1
        partition = chance.choice(PARTITIONS)
        if chance.random() < 0.2:
            partition = f"new{name}{number}"
        ids = sorted({f"k{chance.randrange(KEYS)}" for _ in range(6)})
        say(put(table, f"{name}:{number}", ids, partition))


def change(table: Table, name: str, seconds: float) -> None:
    chance = random.Random(name)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        what = chance.choice(("rescale", "rescale", "undo", "set", "some"))
        rules, default = chance.choice(RULES), chance.choice((1, 3, 4, 8))
        try:
            match what:
                case "rescale":
                    table.buckets.plan_rescale(rules=rules, default=default).apply()
                case "some":
                    table.buckets.plan_rescale(["p=a"], rules=rules, default=default).apply()
                case "undo":
                    table.buckets.undo()
                case "set":
                    table.buckets.set(rules, default=default)
        except Conflict:
            say({"outcome": "conflict", "what": what})
        except Invalid as refused:
            assert what == "undo" or "p=a" in str(refused), refused
        else:
            say({"outcome": "done", "what": what})


def main() -> None:
    what, uri, name, *more = sys.argv[1:]
    match what:
        case "write" | "change":
            table = lw.open_table(uri)
            say("ready")
            sys.stdin.readline()
            (write if what == "write" else change)(table, name, float(more[0]))
        case "paused":
            table = Table(Paused(open_storage(uri)))
            say(put(table, name, more[0].split(), more[1]))
        case "paused_rescale":
            table = Table(Paused(open_storage(uri)))
            try:
                table.buckets.plan_rescale(rules=int(name)).apply()
            except Conflict as conflict:
                say({"outcome": "conflict", "why": str(conflict)})
            else:
                say({"outcome": "done"})


if __name__ == "__main__":
    main()
