"""The task of a cleaning: deleting a batch of files."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.actions.executor import Attempt
from lakewright.model.errors import LakewrightError, Unavailable
from lakewright.storage.paths import join
from lakewright.storage.port import Storage


@dataclass(frozen=True, slots=True)
class Batch:
    """Files to delete: names by partition."""

    files: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def count(self) -> int:
        """How many they are."""
        return sum(len(names) for _, names in self.files)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What became of a batch: per partition the names that are gone, and those that are not."""

    batch: Batch
    failed: tuple[tuple[str, str], ...] = ()


def delete_batch(storage: Storage, batch: Batch, attempt: Attempt) -> Deleted:
    """Delete the files of a batch; one that is gone already counts as deleted.

    A store that does not answer ends the cleaning, which is finished later; a file that it
    refuses to delete is reported.
    """
    paths = [join(partition, name) for partition, names in batch.files for name in names]
    try:
        storage.delete(paths)
    except Unavailable:
        raise
    except LakewrightError:
        return Deleted(batch, tuple(_refused(storage, batch.files)))
    return Deleted(batch)


def _refused(
    storage: Storage, files: Sequence[tuple[str, tuple[str, ...]]]
) -> list[tuple[str, str]]:
    refused = []
    for partition, names in files:
        for name in names:
            try:
                storage.delete([join(partition, name)])
            except Unavailable:
                raise
            except LakewrightError:
                refused.append((partition, name))
    return refused
