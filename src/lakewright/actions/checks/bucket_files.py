"""Checks of the partition-level bucket index: its files, and the buckets that partitions have."""

from collections.abc import Sequence

from lakewright.actions.checks.findings import Findings
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER, hashing_config_path
from lakewright.format.hudi.simple_hash_meta import SIMPLE_FOLDER, parse_simple_name
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice
from lakewright.storage.paths import split
from lakewright.table.state import TableState


def check_rules_files(state: TableState, findings: Findings) -> BucketCounts | None:
    """Check the versions of the rules, and that hashing metadata agrees; return what counts now.

    None where partitions have no numbers of their own, or it cannot be told which.
    """
    store = HashingStore(state.storage)
    counts: BucketCounts | None = None
    with findings.reading("bucket-rules", CONFIGS_FOLDER):
        counts = store.load(state.timeline, verified=False)
        if counts is None:
            return None
        versions = store.history(state.timeline)
        findings.checked["bucket rules"] += len(versions)
        for version in versions:
            if version.config.instant != version.instant:
                findings.problem(
                    "bucket-rules",
                    hashing_config_path(version.instant),
                    f"it says that it is of {version.config.instant}.",
                )
        _note_left(state, {version.instant for version in versions}, findings)
        with findings.reading("bucket-numbers", SIMPLE_FOLDER):
            findings.checked["fixed bucket numbers"] += len(store.fixed(state.timeline))
            store.load(state.timeline)
        try:
            counts.number_of("")
        except Invalid as error:
            findings.note("unsupported", CONFIGS_FOLDER, str(error))
            return None
    return counts


def check_numbers(
    partition: str, slices: Sequence[FileSlice], counts: BucketCounts, findings: Findings
) -> None:
    """Check that every live group is one of the buckets that the rules give its partition."""
    number = counts.number_of(partition)
    for piece in slices:
        bucket = bucket_number(piece.group.file_id)
        if bucket is None or bucket >= number:
            findings.problem(
                "bucket-beyond",
                partition,
                f"{piece.group.file_id} is no bucket of the {number} that the rules give.",
            )


def _note_left(state: TableState, versions: set[str], findings: Findings) -> None:
    pending = {instant.requested for instant in state.timeline.pending()}
    for file in state.storage.list(SIMPLE_FOLDER, stats=False):
        instant, kind = parse_simple_name(split(file.path)[1]) or ("", "")
        if not instant or instant in pending:
            continue
        if kind == "hash_config" and instant not in versions:
            findings.note("left-rules", file.path, "no hashing config belongs to it.")
        if kind == "hashing_meta" and not state.timeline.is_committed(instant):
            findings.note("left-numbers", file.path, f"no instant {instant} claims it.")
