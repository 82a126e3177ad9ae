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
#: The tests of a file there are quick: they go to a process together, and share what it keeps.
UNIT = "tests/unit/"


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of Spark first and in one process, unit tests by file, all others one by one."""
    from xdist.scheduler import LoadScopeScheduling

    class SparkTogether(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if WORD in nodeid:
                return WORD
            return nodeid.partition("::")[0] if nodeid.startswith(UNIT) else nodeid

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """Forget work that is done: after each test, all that is remembered is counted."""
            super().mark_test_complete(node, item_index, duration)
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return SparkTogether(config, log)
