"""Checks of partition folders: their metadata, their base files, their logs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from lakewright.actions.checks.findings import Findings
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.format.hudi.file_names import BASE_EXTENSIONS, base_file, log_file
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.partition_metadata import (
    PARTITION_METADATA_NAMES,
    decode_partition_metadata,
)
from lakewright.model.files import BaseFile, FileSlice, LogFile
from lakewright.storage.port import Folder
from lakewright.table.state import TableState

_THREADS = 8


def check_folder(state: TableState, folder: Folder, findings: Findings) -> Mapping[str, int]:
    """Check one folder and return its data files with their sizes; empty where it has none."""
    bases: list[BaseFile] = []
    logs: list[LogFile] = []
    for name, size in zip(folder.names, folder.sizes, strict=True):
        base = base_file(folder.path, name, size)
        log = None if base is not None else log_file(folder.path, name, size)
        if base is not None:
            bases.append(base)
        elif log is not None:
            logs.append(log)
        elif name[0] != "." and name.rpartition(".")[2] in BASE_EXTENSIONS:
            path = f"{folder.path}/{name}".removeprefix("/")
            findings.note("foreign-file", path, "it is named like no file of the table.")
    if not bases and not logs:
        return {}
    findings.checked["partitions"] += 1
    findings.checked["base files"] += len(bases)
    findings.checked["log files"] += len(logs)
    _check_metadata(state, folder, findings)
    _check_attempts(state, bases, findings)
    _note_orphans(state, [*bases, *logs], findings)
    _check_logs(state, logs, findings)
    files: tuple[BaseFile | LogFile, ...] = (*bases, *logs)
    return {file.name: file.size for file in files}


def check_buckets(partition: str, slices: Sequence[FileSlice], findings: Findings) -> None:
    """Check that no two live groups claim one bucket.

    Ids that are not made for buckets begin with random digits, which do not meet by chance.
    """
    owners: dict[int, str] = {}
    for piece in slices:
        file_id = piece.group.file_id
        bucket = bucket_number(file_id)
        if bucket is None:
            continue
        findings.checked["buckets"] += 1
        other = owners.setdefault(bucket, file_id)
        if other != file_id:
            findings.problem(
                "bucket-twice", partition, f"{other} and {file_id} both are bucket {bucket}."
            )


def _check_metadata(state: TableState, folder: Folder, findings: Findings) -> None:
    present = PARTITION_METADATA_NAMES.intersection(folder.names)
    if not present:
        findings.problem(
            "partition-metadata",
            folder.path,
            "without .hoodie_partition_metadata other software does not find the partition.",
        )
        return
    path = f"{folder.path}/{min(present)}".removeprefix("/")
    with findings.reading("partition-metadata", path):
        found = decode_partition_metadata(state.storage.read(path), path)
        depth = len(folder.path.split("/")) if folder.path else 0
        if found.depth != depth:
            findings.problem(
                "partition-depth", path, f"it states {found.depth} levels, the path has {depth}."
            )


def _check_attempts(state: TableState, bases: Sequence[BaseFile], findings: Findings) -> None:
    seen: dict[tuple[str, str], str] = {}
    for base in bases:
        other = seen.setdefault((base.file_id, base.instant), base.name)
        if other != base.name and state.timeline.is_committed(base.instant):
            findings.problem("base-twice", base.path, f"{other} has the same file id and instant.")


def _note_orphans(
    state: TableState, files: Sequence[BaseFile | LogFile], findings: Findings
) -> None:
    timeline = state.timeline
    for file in files:
        known = timeline.is_committed(file.instant) or file.instant in timeline.pending_writes
        if not known:
            findings.note("orphan-file", file.path, f"no instant {file.instant} claims it.")


def _check_logs(state: TableState, logs: Sequence[LogFile], findings: Findings) -> None:
    def scan(log: LogFile) -> tuple[int, int, Findings]:
        own = Findings()
        blocks = corrupt = 0
        with own.reading("log", log.path), state.storage.open(log.path) as file:
            for block in scan_blocks(file, log.size, log.path):
                blocks += 1
                if block.kind is BlockKind.CORRUPT:
                    corrupt += 1
                elif block.instant is None:
                    own.problem("block-instant", log.path, f"the block at {block.offset} has none.")
        return blocks, corrupt, own

    if not logs:
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="fsck") as pool:
        for log, (blocks, corrupt, own) in zip(logs, pool.map(scan, logs), strict=True):
            findings.checked["log blocks"] += blocks
            findings.merge(own)
            if corrupt:
                # A writer that died leaves one; readers pass over it.
                findings.note("corrupt-block", log.path, f"{corrupt} blocks cannot be read.")
