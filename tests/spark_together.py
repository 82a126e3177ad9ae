"""Which process of a parallel run takes which test: all that need Spark go to one.

A session costs seconds and gigabytes, and is quicker the more it did before. The groups of
pytest-xdist would do, but it writes them into the ids of the tests, and the release that is
pinned writes them where this release of pytest does not look: without a word, every process
started a session of its own. Here the id as its author gave it decides.
"""

from typing import Any

import pytest

#: In the id of every test that needs Spark, be it by the name of its file; a test of the house
#: sees to it.
WORD = "spark"


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of Spark first and in one process, all others one by one wherever there is room."""
    from xdist.scheduler import LoadScopeScheduling

    class SparkTogether(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return WORD if WORD in nodeid else nodeid

    return SparkTogether(config, log)
