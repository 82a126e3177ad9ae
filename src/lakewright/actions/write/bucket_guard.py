"""Conflicts of bucket tables that file ids do not show: numbers of buckets that changed."""

from dataclasses import dataclass

from lakewright.actions.tasks.write_spec import WriteSpec
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.index.hashing_store import HashingStore, check_counts
from lakewright.timeline.committing import Rivals
from lakewright.timeline.conflicts import Touched, check_plans, check_rivals
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class BucketGuard:
    """Refuses a write whose partitions have other numbers of buckets now than it began with.

    It is asked under the lock, and last: the numbers of partitions that no write fixed before
    are written down for the commit that follows.
    """

    spec: WriteSpec
    metadata: CommitMetadata

    def __call__(self, rivals: Rivals, view: TimelineView) -> None:
        """Compare with the table as it is now; ``Conflict`` names the partition and both."""
        spec, counts = self.spec, self.spec.layout.buckets
        if counts is None:
            return
        if not spec.layout.stored:
            # The committer was made before the table said that it has buckets.
            groups = Touched(buckets=True, layout=spec.config.layout)
            check_rivals(spec.instant, self.metadata, rivals, groups)
            check_plans(view, spec.instant, self.metadata, groups)
        store = HashingStore(spec.open_storage())
        written = [path for path, stats in self.metadata.write_stats.items() if stats]
        unfixed = check_counts(store, view, counts, written)
        if unfixed:
            store.write_meta(spec.instant, unfixed, view)
