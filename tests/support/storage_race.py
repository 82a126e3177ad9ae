"""One contestant in a race between processes; run as a script.

It opens the storage, prints ``ready``, waits for a line, does its part and prints the outcome.
``create URI OPTIONS ROUNDS NAME`` tries to be first at ``race/0``, ``race/1``, ... and prints the
rounds it won. ``increment URI OPTIONS TIMES`` adds to the number in ``counter`` by
compare-and-swap, and prints nothing. ``pour URI OPTIONS SIZE`` creates ``poured/0``, ... until it
is killed.
"""

import json
import sys

from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage


def poured(number: int, size: int) -> bytes:
    """The content of ``poured/<number>``."""
    return f"{number:08d}".encode() * (size // 8)


def increment(storage: Storage, times: int) -> None:
    for _ in range(times):
        while True:
            stat = storage.stat("counter")
            number = int(storage.read("counter"))
            if storage.replace_if("counter", str(number + 1).encode(), stat.version):
                break


def main() -> None:
    verb, uri, options, *rest = sys.argv[1:]
    storage = open_storage(uri, json.loads(options))
    storage.stat("warm")
    say("ready")
    sys.stdin.readline()
    if verb == "create":
        rounds, name = int(rest[0]), rest[1].encode()
        say(json.dumps([i for i in range(rounds) if storage.create(f"race/{i}", name)]))
    elif verb == "increment":
        increment(storage, int(rest[0]))
        say("done")
    elif verb == "pour":
        size = int(rest[0])
        for number in range(1_000_000):
            storage.create(f"poured/{number}", poured(number, size))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
