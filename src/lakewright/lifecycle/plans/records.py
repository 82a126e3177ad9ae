"""What is told of a plan beside itself: who began to apply it, what came of it, what was undone."""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from lakewright.lifecycle.plans.plan import (
    Json,
    JsonText,
    Plan,
    Skipped,
    decode,
    moment_of,
    skipped_json,
    skipped_of,
    texts_of,
)
from lakewright.model.shown import SHOWN, Shown, first_of

#: The fact of what was applied without a commit: what became of the targets.
HOW = "how"


#: What to do about a record that an undo reads.
_NEEDED = "The undo of the plan needs it: restore it from a copy."


class PlanState(StrEnum):
    """How far a plan has come; of a damaged one that cannot be told."""

    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    UNDOING = "undoing"
    UNDONE = "undone"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Applied(Shown):
    """What came of applying a plan.

    ``instant`` is the commit, None where nothing had to be done, or no commit did it. ``done``
    are the targets that the plan was carried out on, ``skipped`` those that it was not, and why.
    ``undo_until`` is the end of the undo window. ``attempt`` is the one that succeeded, by which
    the kind of plan finds what it wrote down. ``resumed`` says that it was cut off, and that a
    later run found it done.
    """

    plan: str
    table: str
    at: datetime
    by: str
    instant: str | None
    done: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    undo_until: datetime | None = None
    attempt: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)
    resumed: bool = False

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` targets of each sort, None for all."""
        by = "nothing had to be done" if self.instant is None else f"by {self.instant}"
        if self.instant is None and self.done:
            by = self.facts.get(HOW, "without a commit")
        until = (
            ""
            if self.undo_until is None
            else f", can be undone until {self.undo_until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
        yield (
            f"plan {self.plan} of {self.table} applied: {len(self.done)} done, "
            f"{len(self.skipped)} skipped, {by}{until}"
        )
        yield from first_of((f"  {path or '(table)'}" for path in self.done), len(self.done), limit)
        left = (f"  skipped {one.target or '(table)'}: {one.reason}" for one in self.skipped)
        yield from first_of(left, len(self.skipped), limit)

    def to_json(self) -> str:
        """Return it for programs; ``from_json`` reads it again."""
        value = {
            "plan": self.plan,
            "table": self.table,
            "at": self.at.isoformat(),
            "by": self.by,
            "instant": self.instant,
            "done": list(self.done),
            "skipped": [skipped_json(one) for one in self.skipped],
            "undo_until": None if self.undo_until is None else self.undo_until.isoformat(),
            "attempt": self.attempt,
            "facts": dict(self.facts),
            "resumed": self.resumed,
        }
        return json.dumps(value, ensure_ascii=False)

    @staticmethod
    def from_json(text: JsonText, where: str) -> "Applied":
        """Read it; ``Corrupt`` for what is none."""
        return decode(text, where, _applied, _NEEDED)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _applied(value: Json) -> Applied:
    until = value["undo_until"]
    return Applied(
        plan=value["plan"],
        table=value["table"],
        at=moment_of(value["at"]),
        by=value["by"],
        instant=value["instant"],
        done=tuple(value["done"]),
        skipped=skipped_of(value["skipped"]),
        undo_until=None if until is None else moment_of(until),
        attempt=int(value["attempt"]),
        facts=texts_of(value["facts"]),
        resumed=bool(value["resumed"]),
    )


@dataclass(frozen=True, slots=True)
class Undone(Shown):
    """What an undo did.

    ``instant`` is the rollback, or the commit with which things came back; ``how`` says which of
    the two, and why. ``restored`` are the targets, ``rows`` those that a commit brought back and
    ``kept_out`` the old rows whose keys were written since; ``deleted`` are old rows that stayed
    out because their keys were written since and then deleted. ``untold`` counts later writes
    that deleted rows which no file tells any more: those came back. A rollback counts none.
    """

    plan: str
    table: str
    at: datetime
    by: str
    instant: str | None
    how: str
    restored: tuple[str, ...] = ()
    rows: int = 0
    kept_out: int = 0
    deleted: int = 0
    untold: int = 0

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` targets, None for all."""
        rows = f", {self.rows} rows came back" if self.rows else ""
        out = f", {self.kept_out} stayed out for newer ones" if self.kept_out else ""
        if self.deleted:
            out += f", {self.deleted} stayed out because they were deleted since"
        if self.untold:
            out += f" ({untold_text(self.untold)})"
        yield (
            f"plan {self.plan} of {self.table} undone {self.how}: {len(self.restored)} "
            f"restored{rows}{out}"
        )
        told = (f"  {path or '(table)'}" for path in self.restored)
        yield from first_of(told, len(self.restored), limit)

    def to_json(self) -> str:
        """Return it for programs; ``from_json`` reads it again."""
        value = {
            "plan": self.plan,
            "table": self.table,
            "at": self.at.isoformat(),
            "by": self.by,
            "instant": self.instant,
            "how": self.how,
            "restored": list(self.restored),
            "rows": self.rows,
            "kept_out": self.kept_out,
            "deleted": self.deleted,
            "untold": self.untold,
        }
        return json.dumps(value, ensure_ascii=False)

    @staticmethod
    def from_json(text: JsonText, where: str) -> "Undone":
        """Read it; ``Corrupt`` for what is none."""
        return decode(text, where, _undone)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _undone(value: Json) -> Undone:
    return Undone(
        plan=value["plan"],
        table=value["table"],
        at=moment_of(value["at"]),
        by=value["by"],
        instant=value["instant"],
        how=value["how"],
        restored=tuple(value["restored"]),
        rows=int(value["rows"]),
        kept_out=int(value["kept_out"]),
        deleted=int(value.get("deleted", 0)),
        untold=int(value.get("untold", 0)),
    )


def untold_text(writes: int) -> str:
    """Say that what some writes deleted cannot be told any more."""
    many = f"{writes} later writes" if writes > 1 else "1 later write"
    return f"{many} deleted rows which no file tells any more: such rows come back"


@dataclass(frozen=True, slots=True)
class PlanRun:
    """The record of one run: an attempt to apply a plan or to undo it, and how it ended."""

    number: int
    verb: str
    by: str
    began: datetime
    ended: datetime
    result: str

    def to_json(self) -> str:
        """Return it for programs."""
        value = {
            "number": self.number,
            "verb": self.verb,
            "by": self.by,
            "began": self.began.isoformat(),
            "ended": self.ended.isoformat(),
            "result": self.result,
        }
        return json.dumps(value, ensure_ascii=False)

    @staticmethod
    def from_json(text: JsonText, where: str) -> "PlanRun":
        """Read it; ``Corrupt`` for what is none."""
        return decode(text, where, _run, "Delete it: nothing but the list of runs reads it.")


def _run(value: Json) -> PlanRun:
    return PlanRun(
        number=int(value["number"]),
        verb=value["verb"],
        by=value["by"],
        began=moment_of(value["began"]),
        ended=moment_of(value["ended"]),
        result=value["result"],
    )


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan as it is kept with the table, and how far it has come.

    ``damage`` says of a damaged one which file cannot be read, and what to do; ``plan`` holds no
    more than its id tells then, if it is the plan itself.
    """

    plan: Plan
    state: PlanState
    applied: Applied | None = None
    undone: Undone | None = None
    damage: str | None = None

    def __str__(self) -> str:
        if self.damage is not None:
            return f"{self.state}: plan {self.plan.id}: {self.damage}"
        return f"{self.state}: {next(self.plan.lines(0))}"
