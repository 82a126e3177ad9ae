"""The services runner: looks after many tables, again and again, until it is told to stop."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lakewright.actions.services.duties import Duty
from lakewright.actions.services.tending import Opened, Tending, Wish
from lakewright.model.logs import facts
from lakewright.model.options import declare, parse_names
from lakewright.model.services import Outcome, Service, ServiceRun

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The services that a runner does for a table; their names, with commas between, as text."""

    services: tuple[Service, ...]

    @staticmethod
    def parse(text: str) -> "Chosen":
        """Read names; anything else is a ValueError."""
        names = parse_names(text.lower())
        if names == ("none",):
            return Chosen(())
        if not names or any(name not in _NAMES for name in names):
            raise ValueError(text)
        return Chosen(tuple(_NAMES[name] for name in names))

    def __str__(self) -> str:
        return ",".join(_name(service) for service in self.services) or "none"


def _name(service: Service) -> str:
    return service.value.replace(" ", "-")


_NAMES = {_name(service): service for service in Service}

RUNS = declare(
    "lakewright.services",
    Chosen.parse,
    Chosen((Service.COMPACTION, Service.CLEANING, Service.ARCHIVING)),
    doc="Which services the runner does for the table where they are due; those that others began "
    "and deserted it finishes in any case.",
    since="0.1",
    allowed=f"a comma list of {', '.join(_NAMES)}; or none",
)


@dataclass(frozen=True, slots=True)
class Charge:
    """A table that a runner looks after; ``open`` is called for each service."""

    name: str
    open: Opened


def look_after(
    charge: Charge,
    duties: Sequence[Duty],
    is_over: Callable[[], bool] = lambda: False,
    *,
    dry_run: bool = False,
) -> Iterator[ServiceRun]:
    """Do for one table what waits and what is due; stream what was done, and what not and why.

    Which of the ``duties`` is told by ``lakewright.services`` in its settings, their order is
    kept. Errors are told, not raised.
    With ``dry_run`` it is told what would be done, and nothing is.
    """
    try:
        with charge.open() as work:
            wanted = RUNS.read(work.options).services
    except Exception as error:
        log.warning(
            "a table cannot be looked after", exc_info=error, extra=facts(table=charge.name)
        )
        yield ServiceRun(charge.name, None, Outcome.FAILED, f"{type(error).__name__}: {error}")
        return
    # In the order of the duties, whatever the order of the names: each leaves less for the next.
    wishes = [Wish(duty) for duty in duties if duty.service in wanted]
    tending = Tending(charge.name, charge.open, wishes, takes_over=True, is_over=is_over)
    yield from tending.preview() if dry_run else tending.run()


def run_services(
    charges: Callable[[], Iterable[Charge]],
    duties: Sequence[Duty],
    every: float,
    tell: Callable[[ServiceRun], None],
    stop: threading.Event,
    *,
    rounds: int | None = None,
    dry_run: bool = False,
) -> None:
    """Look after tables one after the other, a round every ``every`` seconds, until ``stop``.

    ``charges`` is asked anew for each round. A round that took longer is followed at once. What
    goes wrong with one table, or with finding them, is told, and the rest goes on.
    """
    done = 0
    while not stop.is_set():
        begun = time.monotonic()
        for told in _round(charges, duties, stop, dry_run):
            tell(told)
        done += 1
        if rounds is not None and done >= rounds:
            return
        stop.wait(max(every - (time.monotonic() - begun), 0.0))


def _round(
    charges: Callable[[], Iterable[Charge]],
    duties: Sequence[Duty],
    stop: threading.Event,
    dry_run: bool,
) -> Iterator[ServiceRun]:
    try:
        found = list(charges())
    except Exception as error:
        log.warning("the tables to look after cannot be found", exc_info=error)
        yield ServiceRun("", None, Outcome.FAILED, f"{type(error).__name__}: {error}")
        return
    for charge in found:
        if stop.is_set():
            return
        yield from look_after(charge, duties, stop.is_set, dry_run=dry_run)
