"""What Spark's tasks report to the commit of a write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_spec import FileWritten
from lakewright.actions.write.staging import StagedFile
from lakewright.model.errors import Unsupported

M = TypeVar("M", bound=WriterCommitMessage)


@dataclass
class FilesMessage(WriterCommitMessage):
    """The files that one task wrote."""

    files: tuple[FileWritten, ...]


@dataclass
class StagedMessage(WriterCommitMessage):
    """The rows that one task put aside, None where it had none; of a stream, whose they are."""

    file: StagedFile | None
    stream: str = ""
    batch: int = -1


def all_said(messages: Sequence[M | None]) -> list[M]:
    """Return the messages; ``Unsupported`` where one is missing, for its rows would be lost.

    Plans that Spark runs past its Python writer end with messages of None.
    """
    lost = sum(message is None for message in messages)
    if lost:
        raise Unsupported(
            f"{lost} of {len(messages)} tasks did not say what they wrote: nothing is committed.",
            next_step="Write with a verb of the table, such as table.upsert(df).",
            lost=lost,
        )
    return [message for message in messages if message is not None]


def attempt() -> Attempt:
    """Return the attempt of the Spark task that asks."""
    context = TaskContext.get()
    if context is None:
        return Attempt()
    return Attempt(context.partitionId(), context.stageId(), context.taskAttemptId())
