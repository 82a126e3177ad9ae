"""Counting rows: from footers where that is exact, else by reading as little as possible."""

from lakewright.actions.scan import ScanPlan
from lakewright.engine.local.scan import scan_batches


def count_rows(plan: ScanPlan) -> int:
    """Count the rows of a plan; files that need no merging and no filter are not decoded."""
    counted, rest = plan.split_countable()
    return counted + sum(int(batch.num_rows) for batch in scan_batches(rest))
