"""Finds patterns that run away in Java, which tries one way after the other.

Our own engine reads every text once. Java's goes back and tries again, and a pattern
that can read the same text in many ways keeps it busy for longer than anyone waits. Two tests:

* *Two ways around.* If a loop can read one text in two ways and come back to where it was, then
  each repetition of that text doubles the work. This is decided, not guessed (exponential
  ambiguity of the automaton), for loops of up to ``LARGEST_LOOP`` characters.
* *A bad text.* The work on one text can be counted without doing it: the ways to each place of
  the automaton add up, to the very number of characters that Java looks at. A search for a bad
  text of a partition path's length finds what grows fast without such a loop: ``a?a?a?a?…``, or
  many ``.*`` in a row.

Both ask for a text in which the pattern is not found, because Java stops at the first success.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

from lakewright.model.bucket_rules import char_sets
from lakewright.model.bucket_rules.automaton import Accept, Check, Fork, Graph, Step, Turn
from lakewright.model.bucket_rules.char_sets import CharSet
from lakewright.model.bucket_rules.java_pattern import pattern_of
from lakewright.model.bucket_rules.pattern_tree import Place

#: A loop with more characters is only searched for bad texts.
LARGEST_LOOP = 300
#: Partition paths are hardly longer.
LENGTH = 100
#: Steps of Java's engine on one path, which take it some seconds.
MOST_WORK = 5 * 10**8
#: What each test may cost us.
_MOST_WAYS = 1_000_000
_MOST_PAIRS = 1_000_000
_EFFORT = 1_500_000
_MOST_SYMBOLS = 300_000
_MOST_REPEATED = 30
_START, _LATER, _DONE, _NOWHERE = -1, -2, -3, -4


@dataclass(slots=True)
class _Ways:
    """The automaton without its empty steps: from character to character, with multiplicity.

    A state is a ``Step`` that is about to read; ``_START`` is the start of a text, and ``_LATER``
    any other place where a search begins anew. ``done`` are the states after which the pattern
    is found whatever follows.
    """

    chars: dict[int, CharSet] = field(default_factory=dict)
    next: dict[int, dict[int, int]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)


@lru_cache(maxsize=256)
def runs_away(pattern: str) -> str | None:
    """Say why a pattern can keep Java busy without end, with an example; None where it cannot."""
    ways = _ways_of(pattern_of(pattern).graph)
    if ways is None:
        return "it has too many ways through it to be looked at"
    word = _doubling(ways)
    if word is not None:
        return f"the text {word!r} can be read in two ways by the same loop, again and again"
    text = _worst_text(ways)
    if text is not None:
        return f"it can be tried in more than {MOST_WORK:,} ways on a path such as {text!r}"
    return None


def _ways_of(graph: Graph) -> _Ways | None:
    """Return the steps between characters; None where there are too many to be listed."""
    found = _Ways()
    todo = [_START, _LATER]
    left = _MOST_WAYS
    while todo:
        state = todo.pop()
        if state in found.next:
            continue
        node = graph.nodes[state] if state >= 0 else None
        start = node.then if isinstance(node, Step) else graph.start
        targets: dict[int, int] = {}
        for target in _reached(graph, start, at_start=state == _START):
            left -= 1
            if left < 0:
                return None
            if target == _DONE:
                found.done.add(state)
            elif target != _NOWHERE:
                targets[target] = targets.get(target, 0) + 1
        found.next[state] = targets
        for target in targets:
            step = graph.nodes[target]
            assert isinstance(step, Step)
            found.chars[target] = step.chars
            todo.append(target)
    return found


def _reached(graph: Graph, start: int, *, at_start: bool) -> Iterator[int]:
    """Yield the next step of every way that reads nothing, and ``_DONE`` where all is found.

    Assertions are taken to hold, unless they cannot: this may only add ways. ``_NOWHERE`` stands
    for the effort in between, which the caller counts.
    """
    todo: list[tuple[int, frozenset[int], bool, bool]] = [(start, frozenset(), False, False)]
    while todo:
        at, begun, ended, asserted = todo.pop()
        node = graph.nodes[at]
        match node:
            case Step():
                yield _NOWHERE if ended else at
            case Accept():
                yield _NOWHERE if asserted else _DONE
            case Check(place, then):
                yield _NOWHERE
                if place is not Place.START or at_start:
                    sure = place is Place.START
                    todo.append((then, begun, ended or place is Place.END, asserted or not sure))
            case Fork(more):
                yield _NOWHERE
                todo.extend((way, begun, ended, asserted) for way in more)
            case Turn(into, past, loop, first):
                yield _NOWHERE
                todo.append((past, begun - {loop}, ended, asserted))
                if first or loop not in begun:
                    todo.append((into, begun | {loop}, ended, asserted))
            case _:
                assert_never(node)


# Two ways around


def _doubling(ways: _Ways) -> str | None:
    """Return a text that some loop reads in two ways and comes back from; None without one."""
    for loop in _loops(ways.next):
        if len(loop) > LARGEST_LOOP or loop & ways.done:
            continue
        inside = {
            state: [target for target in ways.next[state] if target in loop] for state in loop
        }
        for state in sorted(loop):
            for target in inside[state]:
                if ways.next[state][target] > 1:
                    return _sample(ways.chars[state]) + _sample(ways.chars[target])
        word = _two_ways(ways.chars, inside)
        if word is not None:
            return word
    return None


def _two_ways(chars: Mapping[int, CharSet], inside: Mapping[int, list[int]]) -> str | None:
    """Return a text on which two ways part at one state and meet again at another."""
    texts: dict[tuple[int, int], str] = {}
    todo: list[tuple[int, int]] = []
    for state in sorted(inside):
        targets = sorted(inside[state])
        for index, one in enumerate(targets):
            for other in targets[index + 1 :]:
                if (one, other) not in texts:
                    texts[one, other] = _sample(chars[state])
                    todo.append((one, other))
    left = _MOST_PAIRS
    for pair in todo:
        left -= 1 + len(inside[pair[0]]) * len(inside[pair[1]])
        if left < 0:
            return None
        common = char_sets.intersection(chars[pair[0]], chars[pair[1]])
        if not common:
            continue
        text = texts[pair] + _sample(common)
        for one in inside[pair[0]]:
            for other in inside[pair[1]]:
                if one == other:
                    return text
                after = (min(one, other), max(one, other))
                if after not in texts:
                    texts[after] = text
                    todo.append(after)
    return None


def _loops(following: Mapping[int, Mapping[int, int]]) -> list[set[int]]:
    """Return the sets of states that can all reach each other and themselves."""
    order: list[int] = []
    seen: set[int] = set()
    for root in following:
        stack = [(root, iter(following[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            state, targets = stack[-1]
            target = next((one for one in targets if one not in seen), None)
            if target is None:
                order.append(state)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(following[target])))
    before: dict[int, list[int]] = {state: [] for state in following}
    for state, reached in following.items():
        for target in reached:
            before[target].append(state)
    loops: list[set[int]] = []
    placed: set[int] = set()
    for root in reversed(order):
        if root in placed:
            continue
        group = {root}
        placed.add(root)
        todo = [root]
        while todo:
            for state in before[todo.pop()]:
                if state not in placed:
                    placed.add(state)
                    group.add(state)
                    todo.append(state)
        if len(group) > 1 or root in following[root]:
            loops.append(group)
    return loops


# A bad text


def _worst_text(ways: _Ways) -> str | None:
    """Return a text on which Java's work is too much; None where the search finds none.

    Tried are the text that leaves the most ways open at each character, and for each
    character the text that repeats it.
    """
    if ways.done & {_START, _LATER}:
        return None
    symbols = _symbols(ways.chars)
    effort = _Effort(_EFFORT)
    texts = [_costly(ways, symbols, effort)]
    texts += [_costly(ways, [symbol], effort) for symbol in symbols[:_MOST_REPEATED]]
    return min((text for text in texts if text is not None), key=len, default=None)


@dataclass(slots=True)
class _Effort:
    """Steps that a search has left."""

    left: int


def _costly(ways: _Ways, symbols: list[tuple[str, frozenset[int]]], effort: _Effort) -> str | None:
    """Return a text of some characters on which the work is too much, made greedily; or None."""
    counts = dict(ways.next[_START])
    work = 0
    text = ""
    while len(text) < LENGTH:
        best: tuple[int, str, dict[int, int]] | None = None
        for char, readers in symbols:
            after = dict(ways.next[_LATER])
            found = False
            for state in counts.keys() & readers:
                found = found or state in ways.done
                for target, many in ways.next[state].items():
                    after[target] = after.get(target, 0) + counts[state] * many
                effort.left -= 1 + len(ways.next[state])
            if effort.left < 0:
                return None
            total = sum(after.values())
            if not found and (best is None or total > best[0]):
                best = (total, char, after)
        if best is None:
            return None
        total, char, counts = best
        work += total
        text += char
        if work > MOST_WORK:
            return text
    return None


def _symbols(chars: Mapping[int, CharSet]) -> list[tuple[str, frozenset[int]]]:
    """Return one character for each set of states that can read the same ones."""
    states: dict[CharSet, list[int]] = {}
    for state, ranges in chars.items():
        states.setdefault(ranges, []).append(state)
    borders = sorted({low for ranges in states for low, _ in ranges})
    found: dict[frozenset[int], str] = {}
    for border in borders[: _MOST_SYMBOLS // (1 + len(states))]:
        sets = [ranges for ranges in states if char_sets.holds(ranges, border)]
        readers = frozenset(state for ranges in sets for state in states[ranges])
        if readers not in found:
            found[readers] = _sample(_common(sets))
    return [(char, readers) for readers, char in found.items()]


def _common(sets: list[CharSet]) -> CharSet:
    common = char_sets.EVERYTHING
    for ranges in sets:
        common = char_sets.intersection(common, ranges)
    return common


def _sample(chars: CharSet) -> str:
    """Return a character of a set, one that can be printed where there is one."""
    for wished in (char_sets.DIGIT, char_sets.LOWER, char_sets.PROPERTIES["Graph"]):
        found = char_sets.intersection(chars, wished)
        if found:
            return chr(found[0][0])
    return chr(chars[0][0])
