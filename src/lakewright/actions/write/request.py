"""What a write is asked to do, checked as far as the table need not be known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from lakewright.actions.tasks.write_spec import KeysToDelete
from lakewright.actions.write.agreement import check_operation_agrees
from lakewright.model.errors import Invalid
from lakewright.model.writing import Operation
from lakewright.table.schemas import LATEST_SCHEMA
from lakewright.table.state import TableState
from lakewright.timeline.committing import Rivals

R = TypeVar("R")

SCHEMA = "schema"
#: Entries of a commit's extra metadata that a writer makes itself.
RESERVED = (SCHEMA, LATEST_SCHEMA)


@dataclass(frozen=True, slots=True, eq=False)
class Change(Generic[R]):
    """Rows to write and records to delete, in one commit; the rows are the engine's own."""

    rows: R | None = None
    deletes: KeysToDelete | None = None


#: Works out a change from the table that it will be applied to.
ChangeMaker: TypeAlias = Callable[[TableState], Change[R]]
#: Looks at the writes that took effect since a write began; raises ``Conflict``.
RivalCheck: TypeAlias = Callable[[Rivals], None]


@dataclass(frozen=True, slots=True, eq=False)
class WriteRequest(Generic[R]):
    """One write, whatever the verb.

    ``change``, where it is given, makes the rows and deletes anew for every attempt, from the
    table as that attempt finds it; the write is safe against whatever others commit meanwhile.
    ``prepared`` says that rows carry their right ``_hoodie_record_key`` and
    ``_hoodie_partition_path``; otherwise such columns are Hudi's business and left out.
    ``dedupe`` makes an insert leave out keys that are stored. ``partitions`` are the paths that
    a deletion of partitions names. ``retry`` is how often the write runs again after a conflict.

    ``check`` looks at the table that an attempt builds on, before anything is written, and may
    refuse it; ``guard`` looks at the writes that took effect meanwhile, beside the write's own.
    """

    operation: Operation
    options: Mapping[str, str] = field(default_factory=dict)
    instant: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    retry: int = 0
    dedupe: bool = False
    partitions: tuple[str, ...] = ()
    change: ChangeMaker[R] | None = None
    prepared: bool = False
    check: Callable[[TableState], None] | None = None
    guard: RivalCheck | None = None

    def __post_init__(self) -> None:
        if self.retry < 0:
            raise Invalid(f"retry={self.retry} is no count.", next_step="Give 0 or more.")
        if self.retry and self.instant is not None:
            raise Invalid(
                f"a write at the given instant {self.instant} runs once: after a conflict the "
                "timeline holds a later one.",
                next_step="Leave out instant or retry.",
            )
        for name, given in (("metadata", self.metadata), ("options", self.options)):
            for key, value in given.items():
                if not all(isinstance(text, str) for text in (key, value)):
                    raise Invalid(
                        f"{name} holds {key!r}: {value!r}, which is not text.",
                        next_step="Give texts for keys and values.",
                    )
        check_operation_agrees(self.operation, self.options)
        for key in self.metadata:
            if key in RESERVED:
                raise Invalid(
                    f"the metadata entry {key!r} is written by the commit itself.",
                    next_step="Choose another name.",
                    key=key,
                )

    @property
    def looks_up(self) -> bool:
        """Whether the write must know which of its keys are stored."""
        return self.dedupe or self.operation in (Operation.UPSERT, Operation.DELETE)
