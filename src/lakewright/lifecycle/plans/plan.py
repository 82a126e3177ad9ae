"""A plan as a value: what is going to happen to a table, why, and what it was made on.

It is made without changing anything, kept with the table, looked at by people and programs, and
carried out later by whoever finds it.
"""

import hashlib
import html
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from lakewright.model.errors import Corrupt, Invalid, NotFound
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.timeline.view import TimelineView

T = TypeVar("T")
#: What JSON holds, before it was looked at.
Json: TypeAlias = Any
#: JSON as it is read.
JsonText: TypeAlias = str | bytes

_KIND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
_ID = re.compile(r"([a-z][a-z0-9-]*)-([0-9]{8}T[0-9]{9})-([0-9a-f]{4})", re.ASCII)
_RESTORE_PLAN = (
    "Where it was applied, an undo needs it: restore it from a copy. Otherwise delete its folder, "
    "and plan again."
)
_COLUMNS = ("target", "files", "bytes", "reason")


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One thing that a plan is going to do.

    ``target`` is a partition path, or a file. ``facts`` are values that the kind of plan needs
    when it is carried out, or that explain the item, by name.
    """

    target: str
    reason: str
    files: int = 0
    bytes: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skipped:
    """What a plan, or a run of it, leaves out, and why.

    ``rest`` says that it is no single thing, but what goes beyond the most that is done at once.
    """

    target: str
    reason: str
    rest: bool = False


@dataclass(frozen=True, slots=True)
class PlanBase:
    """What a plan was made on.

    ``requested`` and ``completed`` are the times of the newest completed write, None in a table
    without any. ``checksum`` stands for everything else that the kind of plan looked at.
    """

    requested: str | None
    completed: str | None
    checksum: str = ""

    @staticmethod
    def of(view: TimelineView, *looked_at: str) -> "PlanBase":
        """Return the base of a plan that is made now; ``looked_at`` are further texts."""
        newest = max(view.data(), key=lambda i: (i.completed or "", i.requested), default=None)
        return PlanBase(
            None if newest is None else newest.requested,
            None if newest is None else newest.completed,
            checksum(looked_at),
        )


def checksum(texts: Iterable[str]) -> str:
    """Return a short text that differs where the texts do; empty where there are none."""
    whole = json.dumps(list(texts), ensure_ascii=False)
    return "" if whole == "[]" else hashlib.sha256(whole.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Plan(Shown):
    """What is going to happen to a table.

    ``id`` tells the kind and the time, and never comes twice. ``created_at`` is in UTC.
    ``options`` are those with which it was made. ``skipped`` was looked at and left out.
    ``purge`` says that files are deleted at once, without quarantine: nothing brings them back.
    """

    id: str
    table: str
    kind: str
    base: PlanBase
    items: tuple[PlanItem, ...]
    created_by: str
    created_at: datetime
    options: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    purge: bool = False

    @property
    def files(self) -> int:
        """Files that it is about."""
        return sum(item.files for item in self.items)

    @property
    def bytes(self) -> int:
        """Bytes of those files."""
        return sum(item.bytes for item in self.items)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.items

    def explain(self, target: str) -> str:
        """Say what becomes of a target, and why; ``NotFound`` where the plan did not look at it."""
        wanted = str(target).strip("/")
        for item in self.items:
            if item.target == wanted:
                told = "".join(f"\n  {name}: {value}" for name, value in item.facts.items())
                return (
                    f"{_named(item.target)} is in the plan {self.id}: {item.reason} "
                    f"({item.files} files of {item.bytes} bytes){told}"
                )
        for left in self.skipped:
            if left.target == wanted:
                return f"{_named(left.target)} is left out of the plan {self.id}: {left.reason}"
        raise NotFound(
            f"the plan {self.id} says nothing of {target!r}.",
            next_step="show(limit=None) lists all that it says something of.",
            plan=self.id,
            target=target,
        )

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines of text; ``limit`` items, None for all."""
        final = ", deletes them at once: no undo" if self.purge else ""
        yield (
            f"plan {self.id} of {self.table}: {len(self.items)} items, {self.files} files of "
            f"{self.bytes} bytes{final}, made {_moment(self.created_at)} by {self.created_by}"
        )
        items = (
            f"  {_named(item.target)}: {item.files} files of {item.bytes} bytes, {item.reason}"
            for item in self.items
        )
        yield from first_of(items, len(self.items), limit)
        if self.skipped:
            yield f"  left out: {len(self.skipped)}"
            left = (f"    {_named(one.target)}: {one.reason}" for one in self.skipped)
            yield from first_of(left, len(self.skipped), limit)

    def to_json(self) -> str:
        """Return the whole plan; ``from_json`` reads it again."""
        value = {
            "id": self.id,
            "table": self.table,
            "kind": self.kind,
            "base": {
                "requested": self.base.requested,
                "completed": self.base.completed,
                "checksum": self.base.checksum,
            },
            "files": self.files,
            "bytes": self.bytes,
            "created_by": self.created_by,
            "created_at": self.created_at.isoformat(),
            "options": dict(self.options),
            "purge": self.purge,
            "items": [
                {
                    "target": item.target,
                    "reason": item.reason,
                    "files": item.files,
                    "bytes": item.bytes,
                    "facts": dict(item.facts),
                }
                for item in self.items
            ],
            "skipped": [skipped_json(one) for one in self.skipped],
        }
        return json.dumps(value, ensure_ascii=False)

    @staticmethod
    def from_json(text: JsonText, where: str = "the plan") -> "Plan":
        """Read a plan; ``Corrupt``, naming ``where`` it lies, for what is none."""
        return decode(text, where, _plan, _RESTORE_PLAN)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(str(value))}</td>"
                for value in (_named(item.target), item.files, item.bytes, item.reason)
            )
            + "</tr>"
            for item in islice(self.items, SHOWN)
        )
        title = html.escape(next(self.lines(0)))
        return f"<b>{title}</b><table><tr>{head}</tr>{rows}</table>"


def new_plan_id(kind: str, now: datetime) -> str:
    """Return an id for a plan that is made now; ``kind`` is small letters, digits and dashes."""
    if not _KIND.fullmatch(kind):
        raise Invalid(
            f"{kind!r} is no kind of plan.",
            next_step="Kinds are small letters and digits, with dashes between.",
            kind=kind,
        )
    utc = now.astimezone(UTC)
    time = f"{utc:%Y%m%dT%H%M%S}{utc.microsecond // 1000:03d}"
    return f"{kind}-{time}-{secrets.token_hex(2)}"


def check_plan_id(id: object) -> str:
    """Return the moment within an id, by which ids are ordered; ``Invalid`` for what is none."""
    found = _ID.fullmatch(id) if isinstance(id, str) else None
    if found is None:
        raise Invalid(
            f"{id!r} is no id of a plan.",
            next_step="Give one that plans() lists, for example "
            "delete-partitions-20261116T074100123-4f2a.",
            plan=id,
        )
    return found[2]


def unread_plan(id: str) -> "Plan":
    """Return what the id of a plan tells of it, where the plan itself cannot be read."""
    found = _ID.fullmatch(id)
    assert found is not None
    try:
        made = datetime.strptime(f"{found[2]}000", "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        made = datetime.fromtimestamp(0, UTC)
    return Plan(id, "", found[1], PlanBase(None, None), (), "", made)


def decode(
    text: JsonText,
    where: str,
    read: Callable[[Json], T],
    next_step: str = "Restore it from a copy.",
) -> T:
    """Read JSON by a function that picks a value apart; ``Corrupt`` where either fails."""
    try:
        return read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Invalid) as cause:
        raise Corrupt(
            f"{where} cannot be read: {type(cause).__name__}: {cause}.",
            next_step=next_step,
            path=where,
        ) from cause


def _plan(value: Json) -> Plan:
    base = value["base"]
    check_plan_id(value["id"])
    return Plan(
        id=value["id"],
        table=_text(value["table"]),
        kind=_text(value["kind"]),
        base=PlanBase(_maybe(base["requested"]), _maybe(base["completed"]), base["checksum"]),
        items=tuple(
            PlanItem(
                _text(item["target"]),
                _text(item["reason"]),
                int(item["files"]),
                int(item["bytes"]),
                texts_of(item["facts"]),
            )
            for item in value["items"]
        ),
        created_by=_text(value["created_by"]),
        created_at=moment_of(value["created_at"]),
        options=texts_of(value["options"]),
        skipped=skipped_of(value["skipped"]),
        purge=value.get("purge", False) is True,
    )


def fact_of(plan: Plan, item: PlanItem, name: str) -> str:
    """Return a fact of an item that the kind of the plan needs; ``Corrupt`` without it."""
    found = item.facts.get(name)
    if found is None:
        raise lacking(plan, f"of {_named(item.target)} it does not tell the {name}")
    return found


def lacking(plan: Plan, what: str) -> Corrupt:
    """Return the error for a plan that was kept, and is not as plans of its kind are."""
    return Corrupt(
        f"the plan {plan.id} is not as plans of the kind {plan.kind} are: {what}.",
        next_step=_RESTORE_PLAN,
        plan=plan.id,
    )


def skipped_of(value: Json) -> tuple[Skipped, ...]:
    """Read what was left out."""
    return tuple(
        Skipped(_text(one["target"]), _text(one["reason"]), one.get("rest", False) is True)
        for one in value
    )


def skipped_json(one: Skipped) -> dict[str, Json]:
    """Return what was left out, for ``skipped_of`` to read."""
    return {"target": one.target, "reason": one.reason, **({"rest": True} if one.rest else {})}


def names_of_json(value: Json) -> tuple[str, ...]:
    """Read a list of texts."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list of texts")
    return tuple(map(_text, value))


def texts_of(value: Json) -> dict[str, str]:
    """Read texts by name."""
    return {_text(key): _text(held) for key, held in value.items()}


def moment_of(value: Json) -> datetime:
    """Read a moment with its offset from UTC."""
    found = datetime.fromisoformat(_text(value))
    if found.tzinfo is None:
        raise ValueError(f"{value!r} has no offset from UTC")
    return found


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _maybe(value: Json) -> str | None:
    return None if value is None else _text(value)


def _named(target: str) -> str:
    return target or "(table)"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
