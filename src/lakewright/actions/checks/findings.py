"""What a check of a table finds: problems, notes, and how much was looked at."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lakewright.model.errors import Conflict, Corrupt, LakewrightError, NotFound, Unsupported

#: Problems and notes that are kept word for word; more are only counted.
KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that breaks the format, or (as a note) that is worth knowing."""

    code: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class FsckReport:
    """The outcome of a check.

    ``checked`` counts what was looked at, by kind, and ``found`` the problems and notes by
    code. Very many problems or notes are cut to the first ones; ``found`` has them all.
    """

    checked: Mapping[str, int]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()
    found: Mapping[str, int] | None = None

    @property
    def ok(self) -> bool:
        """Whether the table follows the format; notes do not count against it."""
        return not self.problems

    def __str__(self) -> str:
        state = "ok" if self.ok else f"{len(self.problems)} problems"
        counts = ", ".join(f"{count} {kind}" for kind, count in self.checked.items())
        return f"{state}; checked {counts}"


class Findings:
    """Collects while checks run."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._kept: set[Problem] = set()
        self._notes: list[Problem] = []

    def problem(self, code: str, path: str, message: str) -> None:
        """Record that something breaks the format; what two checks come upon counts once."""
        made = Problem(code, path, message)
        if made in self._kept:
            return
        self._found[code] += 1
        if len(self._problems) < KEPT:
            self._problems.append(made)
            self._kept.add(made)

    def note(self, code: str, path: str, message: str) -> None:
        """Record something that is allowed and worth knowing."""
        self._found[code] += 1
        if len(self._notes) < KEPT:
            self._notes.append(Problem(code, path, message))

    @contextmanager
    def reading(self, code: str, path: str) -> Iterator[None]:
        """Turn bytes that cannot be read into a problem of this code, and go on after it.

        It is of the file that the error names, or else of ``path``. What this build cannot read
        is no fault of the table, and is noted.
        """
        try:
            yield
        except Unsupported as error:
            self.note("unsupported", _file_of(error, path), str(error))
        except (Corrupt, NotFound, Conflict) as error:
            self.problem(code, _file_of(error, path), str(error))

    def merge(self, other: "Findings") -> None:
        """Add what another collection found, in its order."""
        self.checked.update(other.checked)
        self._found.update(other._found)
        self._problems.extend(other._problems[: KEPT - len(self._problems)])
        self._kept.update(self._problems)
        self._notes.extend(other._notes[: KEPT - len(self._notes)])

    def report(self) -> FsckReport:
        """Return what was found so far."""
        return FsckReport(
            dict(self.checked), tuple(self._problems), tuple(self._notes), dict(self._found)
        )


def _file_of(error: LakewrightError, path: str) -> str:
    named = error.facts.get("path")
    return named if isinstance(named, str) and named else path
