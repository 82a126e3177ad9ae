"""The change of a table's version as a value: its steps, and what stands in the way."""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.model.shown import Shown


@dataclass(frozen=True, slots=True)
class UpgradeStep:
    """One thing that is done, why, and to how many."""

    what: str
    why: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stands in the way, and how it is removed."""

    what: str
    next_step: str


@dataclass(frozen=True, slots=True)
class UpgradePlan(Shown):
    """What a change of version does to a table, up or down.

    ``properties`` are those that get another value, None for those that go. ``told`` is what
    readers and writers should know of the table afterwards.
    """

    table: str
    from_version: int
    to_version: int
    steps: tuple[UpgradeStep, ...]
    obstacles: tuple[Obstacle, ...] = ()
    properties: Mapping[str, str | None] = field(default_factory=dict)
    told: tuple[str, ...] = ()

    def lines(self, limit: int | None = None) -> Iterator[str]:
        """Stream the plan as lines of text, all of them: every step counts."""
        yield f"{self.table}: version {self.from_version} -> {self.to_version}"
        if not self.steps:
            yield "  nothing to do"
        for number, step in enumerate(self.steps, 1):
            yield f"  {number}. {step.what} ({step.count}): {step.why}"
        for key, value in sorted(self.properties.items()):
            yield f"     {key}" + (" is removed" if value is None else f"={value}")
        for told in self.told:
            yield f"  note: {told}"
        for obstacle in self.obstacles:
            yield f"  in the way: {obstacle.what} {obstacle.next_step}"

    def to_json(self) -> str:
        """Return the plan for programs."""
        value = {
            "table": self.table,
            "from": self.from_version,
            "to": self.to_version,
            "steps": [{"what": s.what, "why": s.why, "count": s.count} for s in self.steps],
            "obstacles": [{"what": o.what, "next_step": o.next_step} for o in self.obstacles],
            "properties": dict(self.properties),
            "notes": list(self.told),
        }
        return json.dumps(value, ensure_ascii=False)

    def _repr_html_(self) -> str:
        title, *rest = self.lines()
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return f"<b>{html.escape(title)}</b><ul>{items}</ul>"


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """What a change of version did."""

    table: str
    from_version: int
    to_version: int
    compactions: tuple[str, ...] = ()
    instants: int = 0
    logs_renamed: int = 0
    files_removed: int = 0

    @property
    def changed(self) -> bool:
        """Whether the version is another one now."""
        return self.from_version != self.to_version

    def __str__(self) -> str:
        if not self.changed:
            swept = f"; {self.files_removed} files of an earlier change removed"
            return f"{self.table}: version {self.to_version} already" + (
                swept if self.files_removed else ""
            )
        return (
            f"{self.table}: version {self.from_version} -> {self.to_version}, {self.instants} "
            f"instants, {len(self.compactions)} compactions, {self.logs_renamed} logs renamed"
        )
