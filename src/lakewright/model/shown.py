"""Values that are looked at as lines of text: plans, and previews of what cannot be undone."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice

from lakewright.model.errors import Invalid

#: Items that are shown unless more are asked for.
SHOWN = 20


class Shown(ABC):
    """A value that tells itself in lines: a title, then its items."""

    __slots__ = ()

    @abstractmethod
    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the value as lines of text; ``limit`` items, None for all."""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def show(self, limit: int | None = SHOWN) -> None:
        """Print the value; ``limit`` items, None for all."""
        for line in self.lines(limit):
            print(line)  # noqa: T201 - showing it is what it is asked for


def first_of(lines: Iterator[str], count: int, limit: int | None) -> Iterator[str]:
    """Stream the first ``limit`` of ``count`` lines, and how many are left out."""
    if limit is not None and not _is_count(limit):
        raise Invalid(
            f"limit={limit!r} is no number of items.",
            next_step="Give a whole number from 0, or None for all.",
            argument="limit",
        )
    yield from islice(lines, limit)
    if limit is not None and count > limit:
        yield f"  … and {count - limit} more"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0
