"""The fuzz driver must find each kind of fault that it is there for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"

TARGETS = """
import os, time
from lakewright.model.errors import Corrupt

def sound(data):
    if data[:1] != b"S":
        raise Corrupt("no S", path="sample", offset=0)

def careless(data):
    {1: "one"}[data.count(b"S")]

def greedy(data):
    bytearray(int.from_bytes(data[:5].ljust(5, b"z"), "big"))

def crashing(data):
    if len(data) > 40:
        os.abort()

TARGETS = {"sound": sound, "careless": careless, "greedy": greedy, "crashing": crashing}
SEEDS = {"sound": [b"Seed of some length"], "careless": [b"S"], "greedy": [bytes(5)]}
"""


def fuzz(folder: Path, *arguments: str) -> tuple[int, str]:
    answer = subprocess.run(
        [sys.executable, FUZZ / "run.py", *arguments, "--folder", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.returncode, answer.stdout


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    (tmp_path / "targets_sample.py").write_text(TARGETS)
    return tmp_path


def test_a_sound_decoder_passes_and_the_same_seed_does_the_same(targets: Path) -> None:
    first = fuzz(targets, "60", "sound", "--runs", "300", "--seed", "7")
    second = fuzz(targets, "60", "sound", "--runs", "300", "--seed", "7")
    assert first[0] == 0, first[1]
    assert "300 runs" in first[1]
    counts = [text.partition("/s")[2] for _, text in (first, second)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("target", "sign"),
    [("careless", "KeyError at"), ("greedy", "MemoryError at"), ("crashing", "ended with -6")],
)
def test_a_faulty_decoder_is_found_and_its_input_kept(
    targets: Path, target: str, sign: str
) -> None:
    code, output = fuzz(targets, "60", target, "--runs", "300", "--memory", "64")
    assert code == 1
    assert sign in output
    kept = FUZZ.parents[1] / output.partition(" [")[2].partition("]")[0]
    assert kept.is_file()
    kept.unlink()


def test_an_unknown_target_is_refused_with_the_known_ones(targets: Path) -> None:
    code, output = fuzz(targets, "1", "soundd")
    assert code == 2
    assert "careless, crashing, greedy, sound" in output


def test_the_outcome_of_a_target_is_machine_readable(targets: Path, tmp_path: Path) -> None:
    in_flight = tmp_path / "in-flight"
    in_flight.write_bytes(bytes(8 + 2 * (1 << 20)))
    code, output = fuzz(
        targets, "60", "--inside", "sound", "--runs", "50", "--in-flight", str(in_flight)
    )
    assert code == 0
    outcome = json.loads(output)
    assert outcome["accepted"] + outcome["refused"] == outcome["executions"] == 50
