"""Services of a table from another process, which shares only its path with the rest; a script.

``schedule URI SERVICE`` plans, ``carry_out URI SERVICE`` carries out what waits (after a line on
its input, where ``PLAN`` is given: that plan), ``die URI SERVICE CALL`` kills itself before that
storage call, ``look_after URIS`` compacts, cleans and archives until its input ends. Each prints
what it did as one line of JSON.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lakewright as lw
from lakewright.api.table import Table
from lakewright.model.errors import Conflict
from lakewright.storage.open import open_storage
from support.deaths import Mortal
from support.service_scenarios import EAGER, carry_out, schedule
from support.warm import command


def start(*arguments: object) -> "subprocess.Popen[str]":
    """Run this script, with pipes to all its ends."""
    here = Path(__file__)
    return subprocess.Popen(
        [*command(here), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(here.parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: "subprocess.Popen[str]", line: str = "") -> Any:
    """Give a process its line, let it end, and return what it told."""
    out, errors = process.communicate(line, timeout=600)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def done_by(table: Table, service: str, plan: str | None) -> dict[str, Any]:
    try:
        match service:
            case "cleaning":
                result = table.clean(plan)
            case "compaction" if plan is not None:
                result = table.compact(plan)
            case "log_compaction" if plan is not None:
                result = table.log_compact(plan, options=EAGER)
            case "clustering" if plan is not None:
                result = table.cluster(plan)
            case _:
                result = carry_out(table, service)
    except Conflict as conflict:
        return {"outcome": "conflict", "why": str(conflict)}
    instant = result.instant
    return {"outcome": "done", "instant": None if instant is None else instant.requested}


def look_after(uris: Sequence[str], over: threading.Event) -> Counter[str]:
    """Do what there is to do, again and again; tell how often, and what was refused."""
    done: Counter[str] = Counter()
    tables = [lw.open_table(uri) for uri in uris]
    while not over.is_set():
        for table in tables:
            for name in ("compactions", "cleanings", "archivings"):
                try:
                    done[name] += _did(table, name)
                except Conflict:
                    done[f"{name} refused"] += 1
    return done


def _did(table: Table, name: str) -> bool:
    match name:
        case "compactions":
            mor = table.definition.table_type == "MERGE_ON_READ"
            return mor and table.compact().instant is not None
        case "cleanings":
            return table.clean(policy="commits", retain=2).instant is not None
        case _:
            return bool(table.archive(min_commits=2, max_commits=3).instants)


def main() -> None:
    what, where, *more = sys.argv[1:]
    if what == "look_after":
        over = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
        say("ready")
        say(look_after(json.loads(where), over))
        return
    table, service = lw.open_table(where), more[0]
    match what:
        case "schedule":
            plan = table.schedule_cleaning() if service == "cleaning" else schedule(table, service)
            say(None if plan is None else plan.instant.requested)
        case "die":
            done_by(Table(Mortal(open_storage(where), number=int(more[1]))), service, None)
        case _:
            say("ready")
            sys.stdin.readline()
            say(done_by(table, service, more[1] if len(more) > 1 else None))


if __name__ == "__main__":
    main()
