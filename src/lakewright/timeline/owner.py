"""Which process holds a lock or keeps a heartbeat, and whether it still runs."""

import os
import re
import secrets
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TEXT = re.compile(r"lakewright/([^/]*)/([^/]*)/([0-9]+)/([0-9]+)/([0-9a-f]+)").fullmatch


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of some machine, with a token of its own for each thing that it holds.

    ``machine`` tells machines, their boots and their containers apart, as far as process numbers
    mean anything: a process number is only looked up by those who share it. ``pid`` 0 stands for
    no particular process: work that goes on wherever it is taken up.
    """

    host: str
    machine: str
    pid: int
    started: int
    token: str

    @staticmethod
    def here() -> "Owner":
        """Return this process, with a new token."""
        pid = os.getpid()
        return Owner(_host(), _machine(), pid, _started(pid), secrets.token_hex(8))

    @staticmethod
    def nowhere() -> "Owner":
        """Return an owner that is no particular process, with a new token."""
        return Owner(_host(), _machine(), 0, 0, secrets.token_hex(8))

    @staticmethod
    def parse(text: str) -> "Owner | None":
        """Read the text form; None where other software wrote it."""
        match = _TEXT(text)
        if match is None:
            return None
        host, machine, pid, started, token = match.groups()
        return Owner(host, machine, int(pid), int(started), token)

    def __str__(self) -> str:
        return f"lakewright/{self.host}/{self.machine}/{self.pid}/{self.started}/{self.token}"

    @property
    def is_here(self) -> bool:
        """Whether this is the process that runs this."""
        pid = os.getpid()
        return (self.machine, self.pid, self.started) == (_machine(), pid, _started(pid))

    @property
    def is_dead(self) -> bool:
        """Whether the process has certainly ended; False where that cannot be known from here."""
        if not self.pid or not self.machine or self.machine != _machine():
            return False
        started = _started(self.pid)
        if started or not _exists(self.pid):
            return started != self.started
        return False


@cache
def _host() -> str:
    return socket.gethostname().replace("/", "-")


@cache
def _machine() -> str:
    """Name what gives process numbers their meaning: the boot, and the container within it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return ""  # without /proc nothing is known of other processes, and nobody counts as dead
    return f"{boot}.{re.sub('[^0-9]', '', space)}"


def _started(pid: int) -> int:
    """Return when the process began, in ticks since the boot; 0 where that is not known."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    # A process that has ended and waits for its parent holds nothing any more.
    return -1 if fields[0] in ("Z", "X") else int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
