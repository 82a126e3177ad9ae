"""Compares patterns: which are never the first to be found, and which meet on the same paths.

Texts with line terminators are left out: no path has them, and ``$`` and ``.`` do not like them.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from lakewright.model.bucket_rules.automaton import Finder, Graph


@dataclass(slots=True)
class Effort:
    """What a search may cost: steps of an automaton, of which those of large ones count more."""

    left: int

    def part(self, most: int) -> "Effort":
        """Return an effort of its own for one search of several."""
        return Effort(min(most, self.left))

    def spend(self, steps: int, graphs: Sequence[Graph]) -> bool:
        """Take steps away; say whether there were enough."""
        self.left -= steps * (1 + sum(len(graph.nodes) for graph in graphs) // 200)
        return self.left >= 0


def deciding(graphs: Sequence[Graph], effort: Effort) -> dict[int, str] | None:
    """Return the patterns that are the first to be found in some text, with that text.

    The text is a shortest one. What is not in the answer is never first. None where the effort
    did not suffice to know.
    """
    finder = Finder(graphs)
    found: dict[int, str] = {}
    seen = {id(finder.begin())}
    todo = deque([(finder.begin(), "")])
    alphabet = finder.alphabet()
    while todo and len(found) <= len(graphs):
        state, text = todo.popleft()
        found.setdefault(finder.end(state), text)
        if not effort.spend(len(alphabet), graphs):
            return None
        for char in alphabet:
            after = state[char]
            if id(after) not in seen:
                seen.add(id(after))
                todo.append((after, text + char))
    found.pop(-1, None)
    return found


def common_text(one: Graph, other: Graph, effort: Effort) -> str | None:
    """Return a shortest text in which both patterns are found; None where none is known."""
    # One finder would stop at the first pattern; so each has its own.
    finders = (Finder((one,)), Finder((other,)))
    alphabet = sorted(Finder((one, other)).alphabet())
    begin = (finders[0].begin(), finders[1].begin())
    seen = {(id(begin[0]), id(begin[1]))}
    todo = deque([(*begin, "")])
    while todo and effort.spend(len(alphabet), (one, other)):
        left, right, text = todo.popleft()
        if finders[0].end(left) == 0 and finders[1].end(right) == 0:
            return text
        for char in alphabet:
            after = (left[char], right[char])
            if (id(after[0]), id(after[1])) not in seen:
                seen.add((id(after[0]), id(after[1])))
                todo.append((*after, text + char))
    return None
