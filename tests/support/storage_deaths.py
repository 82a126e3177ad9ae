"""Die at every system call of a write to local storage; run as a script.

``FOLDER VERB`` does the verb in ``FOLDER/0``, ``FOLDER/1``, ... Each time a forked process dies
just before its first, second, ... call to the operating system that changes anything, until one
survives. Prints the number of deaths. With ``named`` after them, the file system has no files
without names.
"""

import os
import sys
from pathlib import Path

from lakewright.storage import draft
from lakewright.storage.local import LocalStorage

CALLS = ("open", "write", "utime", "fsync", "link", "rename", "unlink", "mkdir")
OLD, NEW = b"old" * 1_000, b"new" * 2_000


def act(storage: LocalStorage, verb: str) -> None:
    match verb:
        case "create":
            storage.create("a/b/f", NEW)
        case "stream":
            with storage.writer("a/b/f") as file:
                file.write(NEW)
        case "write":
            storage.write("kept/f", NEW)
        case "writer":
            with storage.writer("kept/f") as file:
                file.write(NEW)
        case "replace_if":
            storage.replace_if("kept/f", NEW, storage.stat("kept/f").version)
        case "move":
            storage.move("kept/f", "a/b/f")
        case "delete":
            storage.delete(["kept/f"])


def die_at(number: int) -> None:
    """Replace the calls by ones that count, and end the process at the ``number``-th."""
    made = 0

    def counted(call):
        def wrapper(*args, **kwargs):
            nonlocal made
            if made == number:
                os._exit(9)
            made += 1
            return call(*args, **kwargs)

        return wrapper

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def main() -> None:
    folder, verb = Path(sys.argv[1]), sys.argv[2]
    if "named" in sys.argv[3:]:
        draft._FLAG = 0
    for number in range(100):
        storage = LocalStorage(str(folder / str(number)))
        storage.write("kept/f", OLD)
        (folder / str(number) / "kept/.f.crc").write_bytes(b"checksum of old")
        child = os.fork()
        if child == 0:
            die_at(number)
            act(storage, verb)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            sys.stdout.write(f"{number}\n")
            return


if __name__ == "__main__":
    main()
