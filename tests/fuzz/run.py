"""Fuzz the decoders: only our own errors may escape, in bounded time and memory.

    python tests/fuzz/run.py SECONDS [--seed N] [--runs N] [TARGET ...]
    python tests/fuzz/run.py 0 --replay FILE TARGET

A target is an entry of ``TARGETS`` in a module ``targets_*.py`` beside this file: a function
that takes bytes and either returns or raises a ``LakewrightError``. ``SEEDS`` of the same
module holds valid inputs under the same names. Each target runs in a process of its own, whose
memory is capped, so that a crash of native code is a finding too. The same seed gives the same
inputs in the same order. An input that fails is kept under ``.dev/fuzz``.
"""

import argparse
import hashlib
import importlib.util
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from mutate import LIMIT, mutate

from lakewright.model.errors import LakewrightError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FINDINGS = ROOT / ".dev" / "fuzz"
CORPUS_LIMIT = 512
DISTINCT_FINDINGS = 10
SECONDS_PER_INPUT = 10.0

Decoder = Callable[[bytes], None]


class TooSlow(BaseException):
    """One input took longer than any input may; not an Exception, so that nothing swallows it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder under test, and valid inputs to start from."""

    name: str
    module: Path
    decode: Decoder
    seeds: tuple[bytes, ...]


@dataclass(slots=True)
class Outcome:
    """What happened to one target."""

    executions: int = 0
    accepted: int = 0
    refused: int = 0
    ways: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)


def load_targets(folder: Path, pattern: str = "targets_*.py") -> Iterator[Target]:
    """Import the target modules of the folder; a name is unique over all of them."""
    seen: dict[str, Path] = {}
    for path in sorted(folder.glob(pattern)):
        spec = importlib.util.spec_from_file_location(f"fuzz_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, decode in module.TARGETS.items():
            if name in seen:
                raise SystemExit(f"fuzz: {name!r} is a target of {seen[name]} and of {path}")
            seen[name] = path
            seeds = tuple(module.SEEDS.get(name, ()))
            if any(len(data) > LIMIT for data in seeds):
                raise SystemExit(f"fuzz: a seed of {name!r} is longer than {LIMIT} bytes")
            yield Target(name, path, decode, seeds)


# --- inside the process of one target ------------------------------------------------------------


def _where(error: BaseException) -> str:
    """Name the way an input ended: the kind of error, the line that raised it, and its causes."""
    frames = traceback.extract_tb(error.__traceback__)
    here = f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return here if error.__cause__ is None else f"{here} from {_where(error.__cause__)}"


def _cap_memory(megabytes: int) -> None:
    """Allow this process so much address space beyond what its imports already took."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"one input took more than {SECONDS_PER_INPUT:g} s")


class Fuzzer:
    """Runs one target on mutated inputs and keeps those that end in a new way."""

    def __init__(self, target: Target, seed: int, in_flight: mmap.mmap) -> None:
        self.target = target
        self.random = Random(f"{seed}:{target.name}")
        self.corpus = list(target.seeds)
        self.in_flight = in_flight
        self.ways: set[str] = set()
        self.outcome = Outcome()

    def run(self, seconds: float, runs: int | None) -> Outcome:
        """Try the seeds, then mutations until time or runs are used up."""
        started = time.monotonic()
        for data in self.target.seeds:
            self.attempt(data)
        while len(self.outcome.findings) < DISTINCT_FINDINGS:
            self.outcome.seconds = time.monotonic() - started
            if self.outcome.seconds >= seconds or self.outcome.executions == runs:
                break
            self.attempt(mutate(self.random, self.corpus))
        self.outcome.ways = len(self.ways)
        return self.outcome

    def attempt(self, data: bytes) -> None:
        """Decode one input and judge how it ended."""
        self.in_flight[: 8 + len(data)] = len(data).to_bytes(8, "big") + data
        self.outcome.executions += 1
        signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_INPUT)
        try:
            self.target.decode(data)
        except LakewrightError as error:
            self.outcome.refused += 1
            self._note(_where(error), data)
        except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever escapes is the finding
            signal.setitimer(signal.ITIMER_REAL, 0)
            if self._note(_where(error), data):
                self._find(error, data)
        else:
            self.outcome.accepted += 1
            self._note(f"accepted {len(data).bit_length()}", data)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _note(self, way: str, data: bytes) -> bool:
        if way in self.ways:
            return False
        self.ways.add(way)
        if len(self.corpus) < CORPUS_LIMIT:
            self.corpus.append(data)
        return True

    def _find(self, error: BaseException, data: bytes) -> None:
        kept = keep(self.target.name, data)
        self.outcome.findings.append(f"{_where(error)}: {str(error)[:200]} [{kept}]")
        traceback.print_exception(error, limit=-6)


def keep(target: str, data: bytes) -> str:
    """Store a failing input and return its path, from the repository's root where it lies there."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}.bin"
    path.write_bytes(data)
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def run_inside(target: Target, options: argparse.Namespace) -> None:
    """Fuzz one target in this very process; the outcome goes to standard output as JSON."""
    signal.signal(signal.SIGALRM, _on_alarm)
    with Path(options.in_flight).open("r+b") as file:
        in_flight = mmap.mmap(file.fileno(), 0)
    for data in target.seeds:  # imports and pools that are made on first use are not the input's
        try:
            target.decode(data)
        except LakewrightError:
            continue
    _cap_memory(options.memory)
    outcome = Fuzzer(target, options.seed, in_flight).run(options.seconds, options.runs)
    print(json.dumps(asdict(outcome)))


# --- around it -----------------------------------------------------------------------------------


def run_apart(target: Target, options: argparse.Namespace) -> Outcome:
    """Fuzz one target in a process of its own; a crash of that process is a finding."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    in_flight = FINDINGS / f"{target.name}.{os.getpid()}.in-flight"
    with in_flight.open("wb") as file:
        file.truncate(8 + 2 * LIMIT)
    command = [
        *(sys.executable, __file__, str(options.seconds), "--inside", target.name),
        *("--seed", str(options.seed), "--memory", str(options.memory)),
        *("--folder", str(options.folder), "--modules", target.module.name),
        *("--in-flight", str(in_flight)),
        *(("--runs", str(options.runs)) if options.runs is not None else ()),
    ]
    single = {
        # One thread, one heap: what is measured against the cap is what the input asked for.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "ARROW_IO_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    child = subprocess.run(
        command, env={**os.environ, **single}, stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        if child.returncode == 0:
            return Outcome(**json.loads(child.stdout.splitlines()[-1]))
        held = in_flight.read_bytes()
        data = held[8 : 8 + int.from_bytes(held[:8], "big")]
        death = f"the process ended with {child.returncode} [{keep(target.name, data)}]"
        return Outcome(findings=[death])
    finally:
        in_flight.unlink()


def report(target: Target, outcome: Outcome) -> None:
    """Print what was done to one target, and what was found."""
    speed = outcome.executions / outcome.seconds if outcome.seconds else 0
    print(
        f"{target.name:32} {outcome.executions:>9} runs {speed:>8.0f}/s "
        f"{outcome.accepted:>8} accepted {outcome.refused:>8} refused "
        f"{outcome.ways:>4} ways  {len(outcome.findings)} findings",
        flush=True,
    )
    for finding in outcome.findings:
        print(f"  FOUND {finding}", flush=True)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description="Fuzz the decoders.")
    parser.add_argument("seconds", type=float, nargs="?", default=10.0, help="per target")
    parser.add_argument("targets", nargs="*", help="names of targets; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, help="stop a target after so many inputs")
    parser.add_argument("--memory", type=int, default=512, help="megabytes an input may take")
    parser.add_argument("--replay", type=Path, help="decode this one file and show what happens")
    parser.add_argument("--folder", type=Path, default=HERE, help="where targets_*.py lie")
    parser.add_argument("--modules", default="targets_*.py", help="which files there to load")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--in-flight", type=Path, help=argparse.SUPPRESS)
    return parser.parse_intermixed_args(arguments)


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; the exit code is 1 where something was found."""
    options = parse_arguments(arguments)
    loaded = load_targets(options.folder, options.modules)
    targets = {target.name: target for target in loaded}
    unknown = sorted(set(options.targets) - set(targets))
    if unknown or not targets:
        print(f"fuzz: no target {', '.join(unknown)}; there are: {', '.join(sorted(targets))}")
        return 2
    if options.inside:
        run_inside(targets[options.inside], options)
        return 0
    if options.replay:
        for name in options.targets:
            targets[name].decode(options.replay.read_bytes())
            print(f"{name}: accepted")
        return 0
    found = 0
    for name in options.targets or sorted(targets):
        outcome = run_apart(targets[name], options)
        report(targets[name], outcome)
        found += len(outcome.findings)
    print(f"fuzz: {found} findings, seed {options.seed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
