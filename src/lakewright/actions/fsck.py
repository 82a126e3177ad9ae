"""Checking a table against every rule of its format, and counting what was checked."""

from lakewright.actions.checks.bucket_files import check_numbers, check_rules_files
from lakewright.actions.checks.findings import Findings, FsckReport, Problem
from lakewright.actions.checks.instants import check_history, check_timeline
from lakewright.actions.checks.partitions import check_buckets, check_folder
from lakewright.actions.checks.rows import check_rows
from lakewright.actions.checks.settings import check_settings
from lakewright.actions.checks.written import check_found, check_missing, open_ledger
from lakewright.index.bucket_counts import BucketCounts
from lakewright.storage.port import Folder
from lakewright.table.horizon import see_at
from lakewright.table.partitions import SKIPPED
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState
from lakewright.table.visibility import Visibility

__all__ = ["FsckReport", "Problem", "fsck"]


def fsck(state: TableState, *, deep: bool = False) -> FsckReport:
    """Check properties, timeline, history and every file; ``deep`` reads what live ones hold.

    Problems break the format. Notes do not: pending actions, orphan files, missing checksums
    and the like. Nothing is changed. Memory holds the names of the files that the retained
    commits wrote, and one partition.
    """
    findings = Findings()
    check_settings(state, findings)
    check_timeline(state, findings)
    check_history(state, findings)
    counts = check_rules_files(state, findings)
    ledger = open_ledger(state, findings)
    visible: Visibility | None = None
    with findings.reading("timeline", state.config.timeline_folder):
        visible = see_at(state, None)
    for folder in state.storage.walk("", skip=SKIPPED):
        if "/." in f"/{folder.path}":
            continue
        check_found(ledger, folder.path, check_folder(state, folder, findings), findings)
        if visible is not None:
            _check_slices(state, folder, visible, counts, findings, deep=deep)
    check_missing(ledger, state, findings)
    return findings.report()


def _check_slices(
    state: TableState,
    folder: Folder,
    visible: Visibility,
    counts: BucketCounts | None,
    findings: Findings,
    *,
    deep: bool,
) -> None:
    slices = latest_slices(Listing(folder.path, folder.names, folder.sizes), visible)
    findings.checked["file slices"] += len(slices)
    check_buckets(folder.path, slices, findings)
    if counts is not None:
        check_numbers(folder.path, slices, counts, findings)
    if deep:
        for piece in slices:
            check_rows(state, piece, findings)
