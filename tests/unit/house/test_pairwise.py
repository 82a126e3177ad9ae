"""What the normal suite leaves to the slow one has each of its pairs elsewhere."""

from itertools import combinations, product

import pytest

from support.pairwise import in_pairs, thinned


def pairs(name: str) -> set[object]:
    return set(combinations(enumerate(name.split("-")), 2))


@pytest.mark.parametrize(
    ("choices", "most"),
    [(("ab", "cd", "ef"), 4), (("ab", "cd", "efgh"), 8), (("ab", "cd", "ef", "gh", "ij"), 8)],
    ids=["8", "16", "32"],
)
def test_every_pair_is_met(choices: tuple[str, ...], most: int) -> None:
    names = ["-".join(words) for words in product(*choices)]
    few = in_pairs(names)
    assert len(few) <= most
    assert set().union(*map(pairs, few)) == set().union(*map(pairs, names))


def test_a_pair_that_never_meets_is_not_looked_for() -> None:
    assert in_pairs(["a-x", "b-y"]) == ("a-x", "b-y")


def test_all_cases_stay() -> None:
    names = ["-".join(words) for words in product("ab", "cd", "ef")]
    found = thinned({name: (name,) for name in names})
    assert [one.id for one in found] == names
    quick = [one.id for one in found if not one.marks]
    assert tuple(quick) == in_pairs(names)
