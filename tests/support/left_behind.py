"""What writes left behind in a table that nothing names."""

import time
from pathlib import Path

import lakewright as lw


def left_behind(table: lw.Table) -> list[str]:
    """Return staged rows, markers, heartbeats, locks and data files that no commit names."""
    root = Path(table.path)
    named = {
        stat.path
        for _, body in table.timeline.commits(table.timeline.data())
        for stats in body.write_stats.values()
        for stat in stats
    }
    left = []
    for file in root.rglob("*"):
        path = str(file.relative_to(root))
        if not file.is_file() or file.suffix == ".crc":
            continue
        if path.startswith((".hoodie/.temp", ".hoodie/.heartbeat")):
            left.append(path)
        elif not path.startswith(".hoodie") and not file.name.startswith(".hoodie_partition"):
            left += [] if path in named else [path]
    return left


def nothing_left(table: lw.Table, seconds: float = 60) -> bool:
    """Say whether nothing is left behind once tasks that outlive a failed job have ended."""
    end = time.monotonic() + seconds
    while left_behind(table):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
