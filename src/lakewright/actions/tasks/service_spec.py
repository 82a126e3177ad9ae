"""What the tasks of a table service share, and what makes data files at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lakewright.format.hudi.config import TableConfig
from lakewright.model.schema import Struct
from lakewright.storage.open import cached_storage
from lakewright.storage.port import Storage
from lakewright.table.pinned import PinnedTable


class MakesFiles(Protocol):
    """What the making of a data file needs to know: a write's spec has it, and a service's."""

    @property
    def uri(self) -> str:
        """Where the table lies."""
        ...

    @property
    def config(self) -> TableConfig:
        """How the table is set up."""
        ...

    @property
    def schema(self) -> Struct:
        """The columns that are written, Hudi's own left out."""
        ...

    @property
    def instant(self) -> str:
        """The instant that the files belong to."""
        ...

    @property
    def pinned(self) -> PinnedTable:
        """The table that the files build on."""
        ...

    def open_storage(self) -> Storage:
        """Return the storage of the table."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What all tasks of a service share: enough to work without opening the table again.

    ``schema`` holds the table's columns as its files hold them, Hudi's own left out. ``pinned``
    is the table as it was when the service began. ``settings`` are the options of the service.
    """

    uri: str
    options: Mapping[str, str]
    config: TableConfig
    schema: Struct
    instant: str
    pinned: PinnedTable
    settings: Mapping[str, str] = field(default_factory=dict)
    storage: Storage | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # An open storage stays where it is; the other side opens its own.
        values = (
            self.uri,
            dict(self.options),
            self.config,
            self.schema,
            self.instant,
            self.pinned,
            dict(self.settings),
        )
        return (ServiceSpec, values)

    def open_storage(self) -> Storage:
        """Return the storage of the table, opened once per process."""
        return self.storage or cached_storage(self.uri, self.options)
