"""The plan of a table service as a value: what, why, how many bytes in and out."""

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.model.instant import Instant
from lakewright.model.services import Service
from lakewright.model.shown import SHOWN, Shown, first_of

Body: TypeAlias = CompactionPlan | ReplacePlan | CleanPlan

_COLUMNS = ("partition", "group", "files", "bytes in", "bytes out", "why")


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One thing that a service is going to do.

    ``group`` is a file id, or several joined by commas; ``bytes_out`` is an estimate, 0 for
    what is deleted.
    """

    partition: str
    group: str
    files: int
    bytes_in: int
    bytes_out: int
    why: str


@dataclass(frozen=True, slots=True)
class ServicePlan(Shown):
    """What a service is going to do to a table.

    ``instant`` is where it stands on the timeline, None for a plan that was only made to be
    looked at. ``body`` is the same in Hudi's form, as any process finds it on the timeline.
    ``strategy`` says by what rule the items were chosen, ``passed_over`` what was left out and
    why, with a count each.
    """

    table: str
    service: Service
    instant: Instant | None
    body: Body
    items: Sequence[PlanItem]
    strategy: str
    passed_over: tuple[tuple[str, int], ...] = ()

    @property
    def bytes_in(self) -> int:
        """Bytes that are read, or deleted."""
        return sum(item.bytes_in for item in self.items)

    @property
    def bytes_out(self) -> int:
        """Bytes that are written, about."""
        return sum(item.bytes_out for item in self.items)

    @property
    def files(self) -> int:
        """Files that are read, or deleted."""
        return sum(item.files for item in self.items)

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines of text; ``limit`` items, None for all."""
        at = "not scheduled" if self.instant is None else self.instant.requested
        yield (
            f"{self.service} of {self.table} ({at}), {self.strategy}: {len(self.items)} items, "
            f"{self.files} files, {self.bytes_in} bytes in, about {self.bytes_out} bytes out"
        )
        items = (
            f"  {item.partition or '(table)'} {item.group}: {item.files} files, "
            f"{item.bytes_in} -> {item.bytes_out} bytes, {item.why}"
            for item in self.items
        )
        yield from first_of(items, len(self.items), limit)
        for why, count in self.passed_over:
            yield f"  passed over: {count}, {why}"

    def to_json(self) -> str:
        """Return the plan for programs."""
        value = {
            "table": self.table,
            "service": self.service.value,
            "instant": None if self.instant is None else self.instant.requested,
            "strategy": self.strategy,
            "files": self.files,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "items": [
                {name: getattr(item, name) for name in PlanItem.__slots__} for item in self.items
            ],
            "passed_over": [{"why": why, "count": count} for why, count in self.passed_over],
        }
        return json.dumps(value, ensure_ascii=False)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(str(value))}</td>"
                for value in (
                    item.partition or "(table)",
                    item.group,
                    item.files,
                    item.bytes_in,
                    item.bytes_out,
                    item.why,
                )
            )
            + "</tr>"
            for item in islice(self.items, SHOWN)
        )
        title = html.escape(next(self.lines(0)))
        return f"<b>{title}</b><table><tr>{head}</tr>{rows}</table>"
