"""A short walk of every fuzz target, so that a broken one is seen before the long runs."""

import importlib.util
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from lakewright.model.errors import LakewrightError

FUZZ = Path(__file__).parents[2] / "fuzz"
INPUTS = 40


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FUZZ / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


mutate = load("mutate").mutate
TARGETS = list(load("run").load_targets(FUZZ))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_seeds_are_decoded_and_mutations_raise_only_our_errors(target) -> None:
    for seed in target.seeds:
        target.decode(seed)
    random = Random(target.name)
    for _ in range(INPUTS):
        data = mutate(random, target.seeds)
        try:
            target.decode(data)
        except LakewrightError as error:
            assert str(error)


def test_every_target_has_a_seed() -> None:
    assert TARGETS
    assert not [target.name for target in TARGETS if not target.seeds]
