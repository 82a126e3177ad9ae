"""How much listing a table costs above walking its folders.

    ./dev python bench/listing.py --partitions 100000 --files 10

Builds a table of empty base files (two versions per group, so that half of them are live),
then lists it through ``FileIndex`` and walks the same tree with ``os.scandir`` and ``stat``,
in turns. Prints the median time of each, their ratio, and how much memory the listing took
per file while every slice was kept alive. With ``--logs`` every other group has a log file.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Callable
from pathlib import Path

from lakewright.format.hudi.metadata.commit import CommitMetadata, encode_commit
from lakewright.format.hudi.properties import render_properties
from lakewright.storage.open import open_storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import open_state

FIRST, SECOND = "20261115000000000", "20261115000100000"
SCHEMA = (
    '{"type":"record","name":"t","fields":['
    '{"name":"id","type":["null","string"]},{"name":"dt","type":["null","string"]}]}'
)


def build(root: Path, partitions: int, files: int, logs: bool) -> int:
    timeline = root / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    properties = {
        "hoodie.table.name": "listing",
        "hoodie.table.type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "dt",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    (root / ".hoodie" / "hoodie.properties").write_bytes(render_properties(properties))
    body = encode_commit(CommitMetadata(extra={"schema": SCHEMA}), 2, replace=False)
    action = "deltacommit" if logs else "commit"
    for instant in (FIRST, SECOND):
        (timeline / f"{instant}_{instant[:-1]}9.{action}").write_bytes(body)
    made = 0
    for number in range(partitions):
        folder = root / f"dt={number:06d}"
        folder.mkdir()
        names = [".hoodie_partition_metadata"]
        for group in range(max(files // 2, 1)):
            file_id = f"{uuid.UUID(int=number * 1000 + group)}-0"
            names.append(f"{file_id}_0-1-{group}_{FIRST}.parquet")
            if logs and group % 2:
                names.append(f".{file_id}_{SECOND}.log.1_0-2-{group}")
            else:
                names.append(f"{file_id}_0-2-{group}_{SECOND}.parquet")
        for name in names:
            os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY))
        made += len(names)
    return made


def bare_walk(root: str) -> int:
    seen, pending = 0, [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    entry.stat()
                    seen += 1
    return seen


def timed(work: Callable[[], int]) -> tuple[float, int]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def listed(root: str) -> int:
    index = FileIndex(open_state(open_storage(root)))
    return sum(len(snapshot.file_slices) for snapshot in index.list_files_at())


def memory_per_file(root: str, files: int) -> float:
    tracemalloc.start()
    kept = list(FileIndex(open_state(open_storage(root))).list_files_at())
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / files if kept else 0.0


def streamed_peak(root: str) -> int:
    tracemalloc.start()
    listed(root)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--partitions", type=int, default=1_000)
    options.add_argument("--files", type=int, default=10)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--logs", action="store_true")
    options.add_argument("--tree", type=Path, help="use (or build) the tree here and keep it")
    given = options.parse_args()
    root = given.tree or Path(tempfile.mkdtemp(prefix="listing-"))
    try:
        if not (root / ".hoodie").exists():
            took, made = timed(lambda: build(root, given.partitions, given.files, given.logs))
            print(f"built {made} files in {given.partitions} partitions in {took:.1f} s")
        walks, listings = [], []
        seen = slices = 0
        for _ in range(given.rounds):
            took, seen = timed(lambda: bare_walk(str(root)))
            walks.append(took)
            took, slices = timed(lambda: listed(str(root)))
            listings.append(took)
        walk, listing = statistics.median(walks), statistics.median(listings)
        print(
            f"bare walk   {walk:8.3f} s  {seen} files   (spread {min(walks):.3f}-{max(walks):.3f})"
        )
        print(
            f"list_files  {listing:8.3f} s  {slices} slices  ratio {listing / walk:.2f} "
            f"(of the best rounds {min(listings) / min(walks):.2f})"
        )
        print(
            f"memory      {memory_per_file(str(root), seen):8.0f} bytes per file, all slices kept"
        )
        print(
            f"streaming   {streamed_peak(str(root)) / 1e6:8.1f} MB at most, one partition at a time"
        )
    finally:
        if given.tree is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
