"""Few cases out of many, in which every two choices meet; the normal suite runs those."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import pytest


def in_pairs(names: Iterable[str]) -> tuple[str, ...]:
    """Return few of the names, in which all pairs of words are that are in any of them.

    A name says its choices, one word each, always in the same order: ``mor-v9-parts``.
    """
    pairs = {name: set(combinations(enumerate(name.split("-")), 2)) for name in names}
    wanted = set().union(*pairs.values())
    chosen: list[str] = []
    while wanted:
        chosen.append(max(pairs, key=lambda name: len(pairs[name] & wanted)))
        wanted -= pairs[chosen[-1]]
    return tuple(name for name in pairs if name in chosen)


def thinned(cases: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """Return the parameters of a test by id: those in which all pairs meet, the others slow."""
    always = in_pairs(cases)
    return [
        pytest.param(*values, id=name, marks=() if name in always else pytest.mark.slow)
        for name, values in cases.items()
    ]
