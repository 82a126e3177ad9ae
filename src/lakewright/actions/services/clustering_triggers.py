"""When a clustering that runs by itself is due."""

from collections.abc import Mapping

from lakewright.actions.services.clustering_options import MAX_COMMITS
from lakewright.model.instant import Action
from lakewright.timeline.entries import Entry
from lakewright.timeline.plans import is_plan
from lakewright.timeline.view import TimelineView


def clustering_due(timeline: TimelineView, options: Mapping[str, str]) -> str | None:
    """Say why a clustering is due, None where it is not; ``options`` over the table's properties.

    Commits are counted as in Hudi: those requested after the last clustering was, finished or
    not; all of the active timeline where there was none.
    """
    last = max(
        (e.instant.requested for e in timeline.entries if is_clustering(timeline, e)), default=""
    )
    count = sum(i.requested > last for i in timeline.data())
    enough = MAX_COMMITS.read(options)
    if count < enough:
        return None
    return f"{count} commits since the last clustering, {enough} are enough"


def is_clustering(view: TimelineView, entry: Entry) -> bool:
    """Say whether an entry is a clustering, planned or carried out."""
    if entry.planned is Action.CLUSTERING:
        return True
    return entry.planned is Action.REPLACECOMMIT and is_plan(view, entry)
