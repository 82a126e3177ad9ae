"""The end of a staged write: its rows are merged by the local engine, in one commit."""

import logging
from collections.abc import Sequence

from lakewright.actions.services.inline import write_and_serve
from lakewright.actions.write.progress import Silence
from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.actions.write.staging import (
    StagedFile,
    check_size,
    clear_staged,
    staged_rows,
    sweep_staged,
)
from lakewright.engine.local.executor import LocalExecutor
from lakewright.interfaces.spark_source.write_options import WriteOptions
from lakewright.lifecycle.tending import wishes_after_write
from lakewright.model.errors import LakewrightError
from lakewright.model.logs import facts
from lakewright.model.writing import WriteResult
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.store_clock import earlier_time

log = logging.getLogger(__name__)


def merge_staged(
    storage: Storage,
    options: WriteOptions,
    staged: Sequence[StagedFile],
    request: WriteRequest[ArrowRows],
) -> WriteResult:
    """Write staged rows as one commit."""
    check_size(sum(piece.bytes for piece in staged), options.staged_bytes)
    state = open_state(storage)
    rows = staged_rows(storage, staged) if staged else None
    committer = StorageCommitter(storage, state.config, request.options)
    executor = LocalExecutor(request.options)
    name = state.config.name
    return write_and_serve(
        name, state, executor, rows, request, committer, Silence(), wishes_after_write
    )


def forget_staged(storage: Storage, folder: str) -> None:
    """Delete the staged rows of a write that is over, and what dead ones left long ago.

    The write took effect: that some of it cannot be deleted now does not make it fail.
    """
    try:
        clear_staged(storage, folder)
        sweep_staged(storage, earlier_time(storage))
    except LakewrightError as error:
        log.warning("staged rows could not be deleted: %s", error, extra=facts(folder=folder))
