"""Patterns as one automaton that reads a text once, whatever the patterns are.

A pattern becomes a graph of nodes (an NFA). ``Finder`` walks the graphs of several patterns at the
same time and remembers every step that it has made (a DFA, made while it is used), so that a
text of known shape costs one dictionary lookup for each character, for all patterns together.
Memory is bounded: when too many steps are remembered, they are forgotten.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from lakewright.model.bucket_rules import pattern_tree
from lakewright.model.bucket_rules.char_sets import LAST, CharSet
from lakewright.model.bucket_rules.pattern_tree import Assertion, Chars, Choice, Place, Repeat

#: Remembered steps of one finder, above which it begins anew.
MOST_STEPS = 200_000

_TERMINATORS = "\n\r\x85\u2028\u2029"
#: Characters of paths, and some that assertions see; examples are made of them.
_LIKELY = [ord(char) for char in "01a_-=/.é中\u2013"]
_TAIL = "$"
#: A mark on a letter: a part of a word, or only for an edge in front of it.
_MARKED = "w"
_MARKED_AFTER = "a"


@dataclass(frozen=True, slots=True)
class Step:
    """One character of a set, then ``then``."""

    chars: CharSet
    then: int


@dataclass(frozen=True, slots=True)
class Check:
    """A place in the text, then ``then``."""

    place: Place
    then: int


@dataclass(frozen=True, slots=True)
class Fork:
    """Any of these, the preferred one first."""

    ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """Another turn of a repetition, ``into`` its body, or ``past`` it.

    ``first`` tells the way in from the end of a turn: Java leaves a repetition, whose number is
    ``loop``, after a turn that took no character. No text is found by that alone; but
    it bounds the ways through a repetition.
    """

    into: int
    past: int
    loop: int
    first: bool


@dataclass(frozen=True, slots=True)
class Accept:
    """The pattern is found."""


GraphNode = Step | Check | Fork | Turn | Accept


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes of a pattern, of which the last is where it begins."""

    nodes: tuple[GraphNode, ...]

    @property
    def start(self) -> int:
        """The node to begin at."""
        return len(self.nodes) - 1

    def places(self) -> set[Place]:
        """Return the kinds of assertions that occur."""
        return {node.place for node in self.nodes if isinstance(node, Check)}


def graph_of(tree: pattern_tree.Node) -> Graph:
    """Return the graph of a pattern; repetitions with numbers are written out."""
    nodes: list[GraphNode | None] = [Accept()]
    start = _add(tree, 0, nodes)
    if start != len(nodes) - 1:
        nodes.append(Fork((start,)))
    return Graph(tuple(node for node in nodes if node is not None))


def _add(tree: pattern_tree.Node, then: int, nodes: list[GraphNode | None]) -> int:
    """Put the nodes of ``tree`` in front of ``then``; return the first of them."""
    match tree:
        case Chars(chars):
            nodes.append(Step(chars, then))
        case Assertion(place):
            nodes.append(Check(place, then))
        case pattern_tree.Sequence(parts):
            for part in reversed(parts):
                then = _add(part, then, nodes)
            return then
        case Choice(options):
            ways = tuple(_add(option, then, nodes) for option in options)
            nodes.append(Fork(ways))
        case Repeat(body, least, most):
            return _add_repeat(body, least, most, then, nodes)
        case _:
            assert_never(tree)
    return len(nodes) - 1


def _add_repeat(
    body: pattern_tree.Node,
    least: int,
    most: int | None,
    then: int,
    nodes: list[GraphNode | None],
) -> int:
    loop = len(nodes)
    end = then
    if most is None:
        again = len(nodes)
        nodes.append(None)
        into = _add(body, again, nodes)
        nodes[again] = Turn(into, end, loop, first=False)
        then = again
        if least == 0:
            nodes.append(Turn(into, end, loop, first=True))
            return len(nodes) - 1
        most = least
    optional = 0 if pattern_tree.always_empty(body) else least
    for turn in range(most - 1, -1, -1):
        then = _add(body, then, nodes)
        if turn >= optional:
            nodes.append(Turn(then, end, loop, first=turn == 0))
            then = len(nodes) - 1
    return then


@dataclass(frozen=True, slots=True)
class Around:
    """What stands before and after a place, as far as assertions can see it.

    ``before`` is the character before, or "" at the start; ``after`` the one after, or "" at the
    end. ``tail`` says that what follows is one line terminator and the end.
    """

    before: str
    word_before: bool
    after: str
    word_after: bool
    tail: bool

    def allows(self, place: Place) -> bool:
        """Say whether the assertion holds here, as Java decides it."""
        match place:
            case Place.START:
                return self.before == ""
            case Place.END:
                return self.after == ""
            case Place.TAIL:
                return self.after == "" or self.tail
            case Place.LINE_START:
                if self.after == "" or (self.before == "\r" and self.after == "\n"):
                    return False
                return self.before == "" or self.before in _TERMINATORS
            case Place.LINE_END:
                if self.after == "\n":
                    return self.before != "\r"
                return self.after == "" or self.after in _TERMINATORS
            case Place.WORD_EDGE:
                return self.word_before != self.word_after
            case _:
                assert_never(place)


def is_word(char: str) -> bool:
    """Say whether ``\\b`` takes the character for a part of a word, in Java 8 to 18."""
    return char == "_" or unicodedata.category(char) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd")


class State(dict[str, "State"]):
    """Where the automaton stands; a mapping from the next character to the next state.

    Equal places are made once, so that two states are the same where they are one object.
    """

    __slots__ = ("active", "at_end", "before", "best", "finder", "word_before")

    def __init__(
        self, finder: "Finder", before: str, word_before: bool, active: frozenset[int], best: int
    ) -> None:
        super().__init__()
        self.finder = finder
        self.before = before
        self.word_before = word_before
        self.active = active
        self.best = best
        self.at_end: int | None = None

    def __missing__(self, key: str) -> "State":
        state = self.finder._next(self, key)
        self[key] = state
        return state


class Finder:
    """Finds which of several patterns is the first, in their order, to occur in a text."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._count = len(graphs)
        self._firsts: list[int] = []
        self._starts: list[int] = []
        nodes: list[GraphNode] = []
        for graph in graphs:
            self._firsts.append(first := len(nodes))
            nodes.extend([_moved(node, first) for node in graph.nodes])
            self._starts.append(len(nodes) - 1)
        self._owners = [-1] * len(nodes)
        for index, first in enumerate(self._firsts):
            for node in range(first, self._starts[index] + 1):
                self._owners[node] = index
        self._nodes = tuple(nodes)
        places = set[Place]().union(*(graph.places() for graph in graphs))
        self._words = Place.WORD_EDGE in places
        self._lines = bool(places & {Place.LINE_START, Place.LINE_END})
        self._tails = Place.TAIL in places
        sets = {node.chars for node in nodes if isinstance(node, Step)}
        self._symbols = _Symbols(sets)
        masks = {chars: self._symbols.mask(chars) for chars in sets}
        self._masks = [masks[node.chars] if isinstance(node, Step) else 0 for node in nodes]
        self._forget()

    def begin(self) -> State:
        """Return the state before a text; indexing it by a character, it gives the next."""
        return self._start

    def end(self, state: State) -> int:
        """Return the index of the first pattern found in a text that ends here; -1 for none."""
        best = state.at_end
        if best is None:
            best = state.at_end = self._reach(state, "", False, False)[1]
        return best if best < self._count else -1

    def alphabet(self) -> list[str]:
        """Return characters that stand for all others but those that end lines."""
        return self._symbols.samples(words=self._words)

    def first_in(self, text: str) -> int:
        """Return the index of the first pattern that occurs in the text; -1 where none does."""
        state = self._start
        if text.isascii() and not (self._tails and text.endswith(("\n", "\r"))):
            for char in text:
                state = state[char]
        else:
            for key in self._keys(text):
                state = state[key]
        return self.end(state)

    def _keys(self, text: str) -> list[str]:
        """Return the characters, marked where what surrounds them changes their meaning."""
        keys = list(text)
        if self._words:
            based = False  # Java looks for the letter of a mark by halves of characters
            for at, char in enumerate(text):
                narrow = char <= "\uffff"
                if unicodedata.category(char) == "Mn":
                    if based:
                        keys[at] = char + (_MARKED if narrow else _MARKED_AFTER)
                    based = based and narrow
                else:
                    based = char != "_" and narrow and is_word(char)
        if self._tails and text and text[-1] in _TERMINATORS:
            if text.endswith("\r\n"):
                keys[-2] += _TAIL
            else:
                keys[-1] += _TAIL
        return keys

    def _forget(self) -> None:
        self._known: dict[tuple[str, bool, frozenset[int], int], State] = {}
        self._steps = 0
        self._start = self._state("", False, frozenset(), self._count)

    def _state(self, before: str, word_before: bool, active: frozenset[int], best: int) -> State:
        # Only what an assertion can tell apart makes another state.
        if before and not (self._lines and before in _TERMINATORS):
            before = "x"
        key = (before, word_before, active, best)
        state = self._known.get(key)
        if state is None:
            state = self._known[key] = State(self, *key)
        return state

    def _next(self, state: State, key: str) -> State:
        """Return the state after one more character."""
        if state.best == 0:
            return state
        self._steps += 1
        if self._steps > MOST_STEPS:
            self._forget()
        char, marks = key[0], key[1:]
        word = self._words and (_MARKED in marks or is_word(char))
        places, best = self._reach(state, char, word or _MARKED_AFTER in marks, _TAIL in marks)
        symbol = 1 << self._symbols.of(char)
        masks, nodes = self._masks, self._nodes
        active = set()
        for at in places:
            if masks[at] & symbol and self._owners[at] < best:
                node = nodes[at]
                assert isinstance(node, Step)
                active.add(node.then)
        return self._state(char, word, frozenset(active), best)

    def _reach(
        self, state: State, after: str, word_after: bool, tail: bool
    ) -> tuple[list[int], int]:
        """Return the steps that are possible from here, and the best pattern found by now."""
        around = Around(state.before, state.word_before, after, word_after, tail)
        best = state.best
        seen = set(state.active)
        seen.update(self._starts[:best])
        todo = list(seen)
        steps = []
        while todo:
            at = todo.pop()
            if self._owners[at] >= best:
                continue
            node = self._nodes[at]
            more: tuple[int, ...] = ()
            match node:
                case Step():
                    steps.append(at)
                case Fork(ways):
                    more = ways
                case Turn(into, past):
                    more = (into, past)
                case Check(place, then):
                    more = (then,) if around.allows(place) else ()
                case Accept():
                    best = self._owners[at]
                case _:
                    assert_never(node)
            for way in more:
                if way not in seen:
                    seen.add(way)
                    todo.append(way)
        return steps, best


def _moved(node: GraphNode, by: int) -> GraphNode:
    match node:
        case Step(chars, then):
            return Step(chars, then + by)
        case Check(place, then):
            return Check(place, then + by)
        case Fork(ways):
            return Fork(tuple(way + by for way in ways))
        case Turn(into, past, loop, first):
            return Turn(into + by, past + by, loop, first)
        case Accept():
            return node
        case _:
            assert_never(node)


class _Symbols:
    """Characters that no set tells apart are one symbol."""

    def __init__(self, sets: Iterable[CharSet]) -> None:
        borders = {0}
        for chars in sets:
            for low, high in chars:
                borders.add(low)
                borders.add(high + 1)
        self._borders = sorted(borders)

    def of(self, char: str) -> int:
        """Return the symbol of a character."""
        return bisect_right(self._borders, ord(char)) - 1

    def samples(self, *, words: bool) -> list[str]:
        """Return one character of each symbol, and where asked of both kinds for ``\\b``."""
        found: dict[tuple[int, bool], str] = {}
        ends = [*self._borders[1:], LAST + 1]
        for low, end in zip(self._borders, ends, strict=True):
            likely = [code for code in _LIKELY if low <= code < end]
            more = range(low, min(end, LAST + 1, low + (500 if words else 10)))
            for char in map(chr, (*likely, *more)):
                if char not in _TERMINATORS and not "\ud800" <= char <= "\udfff":
                    found.setdefault((low, words and is_word(char)), char)
        return list(found.values())

    def mask(self, chars: CharSet) -> int:
        """Return the symbols of a set as bits."""
        bits = 0
        for low, high in chars:
            first = bisect_right(self._borders, low) - 1
            end = bisect_right(self._borders, high)
            bits |= (1 << end) - (1 << first)
        return bits
