"""The services runner as a Python call: tables in, what was done for them out."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from lakewright.actions.services.clean_options import parse_duration
from lakewright.actions.services.runner import Charge, look_after, run_services
from lakewright.api.lake import Lake
from lakewright.api.opening import open_table
from lakewright.api.table import Table
from lakewright.lifecycle.tending import ALL_DUTIES
from lakewright.model.errors import Invalid
from lakewright.model.services import ServiceRun

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lakewright.actions.services.servicing import Servicing

Settings = Mapping[str, str]
_NONE: Mapping[str, Settings] = MappingProxyType({})


class ServicesRunner:
    """Looks after tables: finishes what others deserted, then does what is due, table by table.

    ``tables`` are tables, paths, or a lake, whose tables are asked for anew in each round.
    ``settings`` hold for all of them and ``table_settings`` for one, by its name or path; both
    win over the table's own properties, where ``lakewright.services`` says which services are
    done. Any number of runners may look after the same table: one at a time does.
    """

    def __init__(
        self,
        tables: "Lake | Iterable[Table | str]",
        *,
        settings: Settings | None = None,
        table_settings: Mapping[str, Settings] = _NONE,
    ) -> None:
        self._tables = tables if isinstance(tables, Lake) else tuple(tables)
        self._settings = dict(settings or {})
        self._table_settings = {name: dict(own) for name, own in table_settings.items()}
        self._stop = threading.Event()

    def once(self, *, dry_run: bool = False) -> tuple[ServiceRun, ...]:
        """Look after each table once, and return what was done, and what not and why.

        With ``dry_run`` it is what would be done now, each service by itself; nothing is.
        """
        charges = self._charges()
        return tuple(
            told for charge in charges for told in look_after(charge, ALL_DUTIES, dry_run=dry_run)
        )

    def run(
        self,
        every: str | float = "5m",
        tell: Callable[[ServiceRun], None] | None = None,
        *,
        rounds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Look after the tables every so often (``90s``, ``5m``, ``1h``) until ``stop``.

        ``tell`` hears of each service as soon as it is over; the log does in any case. With
        ``dry_run`` it hears what would be done.
        """
        seconds, told = _seconds(every), tell or _unheard
        run_services(
            self._charges, ALL_DUTIES, seconds, told, self._stop, rounds=rounds, dry_run=dry_run
        )

    def stop(self) -> None:
        """End ``run`` after the service that is under way; any thread may ask."""
        self._stop.set()

    def _charges(self) -> Iterator[Charge]:
        if isinstance(self._tables, Lake):
            lake = self._tables
            for name in lake.tables():
                yield self._charge(name, partial(lake.table, name))
            return
        for table in self._tables:
            if isinstance(table, Table):
                yield self._charge(table.name, partial(_as_it_is, table), table.path)
            else:
                yield self._charge(table, partial(open_table, table))

    def _charge(self, name: str, table: Callable[[], Table], path: str | None = None) -> Charge:
        own = self._table_settings.get(name, self._table_settings.get(path or "", {}))
        options = {**self._settings, **own}

        def opened() -> "AbstractContextManager[Servicing]":
            return table().charge(options).open()

        return Charge(name, opened)


def _as_it_is(table: Table) -> Table:
    return table


def _unheard(_told: ServiceRun) -> None:
    """Hear nothing: the log tells."""


def _seconds(every: str | float) -> float:
    try:
        found = parse_duration(every) if isinstance(every, str) else float(every)
    except ValueError as cause:
        raise Invalid(
            f"every={every!r} is no duration.", next_step="Write 90s, 5m or 1h."
        ) from cause
    if found <= 0:
        raise Invalid(f"every={every!r} leaves no time between rounds.", next_step="Write 5m.")
    return found
