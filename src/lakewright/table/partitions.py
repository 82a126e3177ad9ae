"""Finding the partitions of a table by walking its folders, pruned ones not even entered.

A partition is a folder that holds files named like Hudi's. Where every level of the tree is
known to stand for one column, a folder whose values cannot match is left out before anything
below it is listed: a filter on one day of a hundred thousand lists that day alone.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, thread_time

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.partition_paths import SLASHED_DATES, partition_values
from lakewright.model.expression.analyse import references
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.prune import ColumnRange
from lakewright.model.files import PartitionDescriptor
from lakewright.model.schema import STRING, Struct
from lakewright.storage.port import Folder, Storage
from lakewright.storage.streams import map_bounded
from lakewright.table.pruning import Path, Tally, compile_filters, partition_ranges

#: Never entered: the table's own metadata.
SKIPPED = frozenset({".hoodie"})
#: Folders listed at a time, where many single ones are left after pruning.
LISTINGS = 16
#: Seconds that folders listed one by one may be waited for, in all.
PATIENCE = 0.01


@dataclass(frozen=True, slots=True)
class Tree:
    """The folders of a table and what they mean."""

    storage: Storage
    config: TableConfig
    schema: Struct

    def describe(self, path: str) -> PartitionDescriptor:
        """Return a partition by its path, with the values that the path tells."""
        return PartitionDescriptor(path, partition_values(path, self.config, self.schema))


def walk_partitions(
    tree: Tree, filters: Sequence[BoundExpression], tally: Tally
) -> Iterator[tuple[PartitionDescriptor, Folder]]:
    """Stream the folders that may hold matching rows; a folder at a time is in memory."""
    if not tree.config.partition_fields:
        yield from _unpartitioned(tree, tally)
        return
    may_match = compile_filters(filters)
    for folder in _folders(tree, filters, tally):
        if "/." in f"/{folder.path}":
            continue
        descriptor = tree.describe(folder.path)
        kept = not filters or may_match(partition_ranges(descriptor.values))
        tally.partition(kept=kept)
        if kept:
            yield descriptor, folder


def list_partitions(
    tree: Tree, paths: Iterable[str], filters: Sequence[BoundExpression], tally: Tally
) -> Iterator[tuple[PartitionDescriptor, Folder]]:
    """Stream the named partitions, without looking for others; absent ones are empty."""
    kept = []
    may_match = compile_filters(filters)
    for path in paths:
        descriptor = tree.describe(path)
        matches = not filters or may_match(partition_ranges(descriptor.values))
        tally.partition(kept=matches)
        if matches:
            kept.append(descriptor)
    folders = _ahead(tree.storage, [descriptor.path for descriptor in kept], flat=True)
    for descriptor, found in zip(kept, folders, strict=True):
        yield descriptor, next(iter(found), Folder(descriptor.path, (), ()))


def _unpartitioned(tree: Tree, tally: Tally) -> Iterator[tuple[PartitionDescriptor, Folder]]:
    tally.partition(kept=True)
    yield PartitionDescriptor("", {}), _flat(tree.storage, "")


def _folders(tree: Tree, filters: Sequence[BoundExpression], tally: Tally) -> Iterator[Folder]:
    depth = prunable_levels(tree, filters)
    if not depth:
        yield from tree.storage.walk("", skip=SKIPPED)
        return
    roots = _roots(tree, filters, tally, depth)
    if depth < len(tree.config.partition_fields):
        for root in roots:
            yield from tree.storage.walk(root, skip=SKIPPED)
        return
    for found in _ahead(tree.storage, roots, flat=False):
        yield from found


def prunable_levels(tree: Tree, filters: Sequence[BoundExpression]) -> int:
    """Return how many levels of folders can be pruned by their names, for these filters.

    A level is known to be one column where names are in Hive style or escaped, or where no
    column before it could hold a ``/`` of its own.
    """
    config = tree.config
    fields = config.partition_fields
    if config.properties.get(SLASHED_DATES, "").lower() == "true":
        return 0
    named = frozenset().union(*(references(condition) for condition in filters))
    wanted = [i for i, f in enumerate(fields) if f.kind == "SIMPLE" and _path(f.name) in named]
    if not wanted:
        return 0
    levels = 0
    for number, field in enumerate(fields[: wanted[-1] + 1]):
        settled = config.hive_style or config.url_encode
        if field.kind != "SIMPLE" or not (
            settled or not any(_may_hold_slash(tree, f.name) for f in fields[:number])
        ):
            break
        levels = number + 1
    return levels


def _roots(
    tree: Tree, filters: Sequence[BoundExpression], tally: Tally, depth: int
) -> Iterator[str]:
    """Stream the folders at ``depth`` that may match; only their ancestors are listed."""
    may_match = compile_filters(filters)
    # The tree as far as it is known at each level: a table may have very many folders in one.
    known = [_cut(tree, level) for level in range(1, depth + 1)]
    pending = deque(_children(tree.storage, ""))
    while pending:
        path = pending.popleft()
        level = path.count("/") + 1
        if not may_match(_ranges_at(known[level - 1], path)):
            tally.partition(kept=False)
        elif level == depth or not _looks_like_level(tree, path, level):
            yield path
        else:
            # Depth first: at most one folder of each level is open.
            pending.extendleft(reversed(_children(tree.storage, path)))


def _children(storage: Storage, folder: str) -> Sequence[str]:
    return [path for path in storage.folders(folder) if not path.rpartition("/")[2].startswith(".")]


def _cut(tree: Tree, level: int) -> Tree:
    """Return the tree down to a level."""
    fields = tree.config.partition_fields[:level]
    return replace(tree, config=replace(tree.config, partition_fields=fields))


def _ranges_at(tree: Tree, path: str) -> dict[Path, ColumnRange]:
    """Return what is known of the columns of the first levels, for any partition below."""
    fields = tree.config.partition_fields
    if not _looks_like_level(tree, path, len(fields)):
        return {}
    values = partition_values(path, tree.config, tree.schema)
    ranges = partition_ranges(values)
    last = fields[-1].name
    text = values.get(last)
    if isinstance(text, str) and _may_hold_slash(tree, last):
        # The value may go on in the folders below: "2026" for "2026/11/01". All such texts
        # sort between the name itself and the name followed by the character after "/".
        ranges[_path(last)] = ColumnRange(text, text + "0", nulls=0)
    return ranges


def _looks_like_level(tree: Tree, path: str, level: int) -> bool:
    if not tree.config.hive_style:
        return True
    names = (f.name for f in tree.config.partition_fields[:level])
    return all(
        segment.startswith(f"{name}=") for segment, name in zip(path.split("/"), names, strict=True)
    )


def _may_hold_slash(tree: Tree, column: str) -> bool:
    if tree.config.url_encode:
        return False
    known = column in tree.schema
    return not known or tree.schema.field(column).type == STRING


def _path(column: str) -> Path:
    return tuple(column.split("."))


def _ahead(storage: Storage, roots: Iterable[str], *, flat: bool) -> Iterator[Sequence[Folder]]:
    """List many small folders in the order given, a few at a time in threads.

    They are listed one by one as long as that waits for nothing: where folders answer at once, as
    on a warm local disk, threads would wait for each other alone.
    """
    left, waited = iter(roots), 0.0
    for root in left:
        start = perf_counter() - thread_time()
        found = _listed(storage, root, flat)
        waited += perf_counter() - thread_time() - start
        yield found
        if waited > PATIENCE:
            break
    yield from map_bounded(lambda root: _listed(storage, root, flat), left, threads=LISTINGS)


def _listed(storage: Storage, root: str, flat: bool) -> Sequence[Folder]:
    return [_flat(storage, root)] if flat else list(storage.walk(root, skip=SKIPPED))


def _flat(storage: Storage, path: str) -> Folder:
    prefix = len(path) + 1 if path else 0
    files = [(file.path[prefix:], file.size) for file in storage.list(path)]
    return Folder(path, [name for name, _ in files], [size for _, size in files])
