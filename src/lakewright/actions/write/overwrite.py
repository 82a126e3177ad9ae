"""Which file groups vanish when partitions are overwritten or deleted."""

from collections.abc import Iterable, Mapping, Sequence

from lakewright.actions.tasks.write_spec import FileWritten, WriteSpec
from lakewright.actions.write.result import Outcome
from lakewright.format.hudi.partition_paths import partition_path
from lakewright.model.errors import Invalid, InvalidPath
from lakewright.model.writing import Operation
from lakewright.storage.paths import check_path
from lakewright.storage.streams import map_bounded
from lakewright.table.file_index import FileIndex
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import TableState, table_schema

#: Partitions that are listed at the same time.
_LISTINGS = 16


def outcome_of(
    spec: WriteSpec, files: tuple[FileWritten, ...], partitions: Sequence[str] = ()
) -> Outcome:
    """Return what a write made of its files: the groups that vanish by them are found here.

    ``partitions`` are those that a deletion of partitions names.
    """
    match spec.operation:
        case Operation.INSERT_OVERWRITE:
            touched = sorted({file.partition for file in files})
            return Outcome(files, groups_of(spec.pinned, touched))
        case Operation.INSERT_OVERWRITE_TABLE:
            return Outcome(files, all_groups(spec.pinned.state))
        case Operation.DELETE_PARTITION:
            groups = groups_of(spec.pinned, partitions)
            absent = tuple(path for path, ids in groups.items() if not ids)
            return Outcome((), groups, absent)
        case _:
            return Outcome(files)


def groups_of(pinned: PinnedTable, partitions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the file ids of the live groups of some partitions; absent ones have none."""

    def ids(partition: str) -> tuple[str, tuple[str, ...]]:
        return partition, tuple(piece.group.file_id for piece in pinned.slices(partition))

    return dict(map_bounded(ids, partitions, threads=_LISTINGS))


def all_groups(state: TableState) -> dict[str, tuple[str, ...]]:
    """Return the file ids of all live groups, which the commit that ends them must list."""
    found = {}
    for snapshot in FileIndex(state).list_files_at():
        ids = tuple(piece.group.file_id for piece in snapshot.file_slices)
        if ids:
            found[snapshot.descriptor.path] = ids
    return found


def partition_paths(
    state: TableState, given: Iterable[str | Mapping[str, object]]
) -> tuple[str, ...]:
    """Return the paths of partitions that are given as paths or as values by column."""
    config = state.config
    if not config.partition_fields:
        raise Invalid(
            f"the table {config.name} has no partitions.",
            next_step="Use insert_overwrite_table() with no rows to empty it, or delete(where).",
        )
    if isinstance(given, str | Mapping):
        raise Invalid(
            f"partitions={given!r} is one partition.", next_step=f"Give a list: [{given!r}]."
        )
    if not isinstance(given, Iterable):
        raise Invalid(
            f"partitions={given!r} is no list.",
            next_step="Give paths (dt=2026-11-01) or values by column.",
        )
    schema = table_schema(state)
    names = [field.name for field in config.partition_fields]
    paths = []
    for one in given:
        if isinstance(one, Mapping):
            if strange := sorted(map(str, set(one) - set(names))):
                raise Invalid(
                    f"{', '.join(strange)}: no partition column.",
                    next_step=f"The partition columns are {', '.join(names)}.",
                )
            paths.append(partition_path(one, config, schema))
        elif isinstance(one, str):
            paths.append(_checked(one))
        else:
            raise Invalid(
                f"{one!r} is no partition.",
                next_step="Give paths (dt=2026-11-01) or values by column.",
            )
    return tuple(dict.fromkeys(paths))


def _checked(path: str) -> str:
    cleaned = check_path(path.strip("/"))
    if not cleaned or cleaned.split("/")[0] == ".hoodie":
        raise InvalidPath(
            f"{path!r} is no partition.", next_step="Give a path, such as dt=2026-11-01.", path=path
        )
    return cleaned
