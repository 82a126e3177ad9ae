"""One of several processes that write to a table at the same time; run as a script.

``URI NUMBER ROUNDS`` publishes ROUNDS writes of file groups of its own and as many of one group
that all share, gives up those that lose, and prints one JSON line: the instants that it published
and how many writes lost.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from lakewright.model.errors import Conflict
from lakewright.storage.open import open_storage
from support.commits import Write, committer


def main() -> None:
    uri, number, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    storage = open_storage(uri)
    by = committer(storage)
    done, lost = [], 0
    for turn in range(rounds):
        for group in (f"own-{number}-{turn}", "shared"):
            write = Write.begin(storage, by).base(group)
            try:
                instant = write.publish()
            except Conflict:
                write.abandon()
                lost += 1
            else:
                done.append([instant.requested, instant.completed, group])
    sys.stdout.write(json.dumps({"done": done, "lost": lost}))


if __name__ == "__main__":
    main()
