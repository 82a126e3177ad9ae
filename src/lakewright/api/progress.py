"""Progress of a write on a terminal; nothing is shown elsewhere."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lakewright.actions.write.progress import Progress, Silence
from lakewright.model.options import declare, parse_bool

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

SHOWN = declare(
    "lakewright.progress",
    parse_bool,
    True,
    doc="Whether writes that take longer than a moment show their progress on a terminal.",
    since="0.1",
    allowed="true or false",
)


def watch(name: str, options: Mapping[str, str]) -> Progress:
    """Return the progress of a write to a table: shown where standard error is a terminal."""
    return TerminalProgress(name) if SHOWN.read(options) and sys.stderr.isatty() else Silence()


def task_watcher(progress: Progress) -> Callable[[int, int], None] | None:
    """Return what an engine tells of its tasks to; None where nobody would see it."""
    return progress.tasks if isinstance(progress, TerminalProgress) else None


class TerminalProgress:
    """A line on standard error: the stage, how far it is, tasks, rows and files so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._rows = 0
        self._files = 0
        self._tasks = (0, 0)
        self._total: int | None = None

    def stage(self, name: str, total: int | None = None) -> None:
        """Show the next stage."""
        bars = self._open()
        if self._task is not None:
            bars.remove_task(self._task)
        self._tasks, self._total = (0, 0), total
        self._task = bars.add_task(f"{self._name}: {name}", total=total, counts=self._counts())

    def advance(self, done: int = 1, *, rows: int = 0, files: int = 0) -> None:
        """Move on."""
        self._rows += rows
        self._files += files
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, advance=done, counts=self._counts())

    def tasks(self, done: int, known: int) -> None:
        """Show how many tasks of an engine are done, of those that it knows of by now.

        They move the bar where the stage has no steps of its own to count.
        """
        self._tasks = (done, known)
        if self._bars is not None and self._task is not None:
            if self._total is None:
                self._bars.update(self._task, completed=done, total=known)
            self._bars.update(self._task, counts=self._counts())

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bars is not None:
            self._bars.stop()
        self._bars, self._task = None, None
        self._rows = self._files = 0
        self._tasks = (0, 0)

    def _counts(self) -> str:
        done, known = self._tasks
        if self._files:
            return f"{self._rows:,} rows, {self._files:,} files"
        return f"{done:,} of {known:,} tasks" if known else ""

    def _open(self) -> "Bars":
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bars

            self._bars = Bars(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[counts]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self._bars
