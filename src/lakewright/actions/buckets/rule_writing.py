"""Rules that give chosen partitions chosen numbers of buckets, in few words.

Partitions form a tree by the parts of their paths. A rule for all that lies below a folder is
short, and holds for partitions that are still to come; what differs below it is named exactly,
by one pattern per number that shares beginnings and ends of paths. Where partitions are days or
numbers, and neighbours have the same number of buckets, intervals are shorter.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from lakewright.model.bucket_rules.rules import DEFAULT_BUCKETS, BucketRule, BucketRules

#: Partitions of days to come are taken to be like so many of the newest.
_NEWEST = 30
#: About how many characters a rule costs beside its expression.
_RULE = 55
_PLAIN = frozenset("_=-/ :@#%&~!'\"<>")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_SPECIAL = frozenset("\\.^$|()[]{}*+?")


def compact_rules(numbers: Mapping[str, int]) -> BucketRules:
    """Return rules that give each of these partitions its number, as short as can be found.

    Partitions that are not among them get the number of the newest ones where partitions are
    days, and otherwise the one that makes the rules shortest.
    """
    if not numbers:
        return BucketRules(default=DEFAULT_BUCKETS)
    ordered = _ordered(numbers)
    newest = None
    if ordered is not None and ordered.dates:
        recent = Counter(numbers[path] for path in ordered.paths[-_NEWEST:])
        newest = max(recent, key=lambda number: (recent[number], number))
    found = _by_patterns(numbers, newest)
    if not found.rules or ordered is None:
        return found
    intervals = _by_intervals(numbers, ordered, newest)
    return intervals if _length(intervals) < _length(found) else found


def _length(rules: BucketRules) -> int:
    return sum(_RULE + len(rule.expression) for rule in rules.rules)


def _by_patterns(numbers: Mapping[str, int], default: int | None) -> BucketRules:
    root = _tree(numbers)
    costs = root.costs(sorted(set(numbers.values())))
    if default is None:
        common = Counter(numbers.values())
        default = min(costs, key=lambda number: (costs[number], -common[number], number))
    chosen = _Chosen()
    root.choose(default, chosen)
    return BucketRules(tuple(chosen.rules()), default)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Partitions of one level whose values are dates of one form, or whole numbers, in order."""

    paths: list[str]
    values: list[str]
    dates: bool


def _ordered(paths: Iterable[str]) -> _Ordered | None:
    """Return the partitions in the order of their values; None where these are neither."""
    pairs = [(path.partition("=")[2] or path, path) for path in paths]
    if any("/" in path for _, path in pairs):
        return None
    dates = all(_is_date(value) for value, _ in pairs)
    if dates:
        keys = {value for value, _ in pairs}
        one_form = len({len(value) for value in keys}) == 1
        pairs.sort()
    elif all(_WHOLE.fullmatch(value) for value, _ in pairs):
        keys = {str(int(value)) for value, _ in pairs}
        one_form = True
        pairs.sort(key=lambda pair: int(pair[0]))
    else:
        return None
    if not one_form or len(keys) != len(pairs):  # 1 and 01 are one number, and two partitions
        return None
    return _Ordered([path for _, path in pairs], [value for value, _ in pairs], dates)


def _is_date(value: str) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value if len(value) > 7 else f"{value}-01")
    except ValueError:
        return False
    return True


def _by_intervals(
    numbers: Mapping[str, int], ordered: _Ordered, default: int | None
) -> BucketRules:
    """Return rules of intervals: one for each run of neighbours that have the same number."""
    places = range(len(ordered.paths))
    runs = [
        (number, list(run))
        for number, run in groupby(places, key=lambda place: numbers[ordered.paths[place]])
    ]
    if default is None:
        counts = Counter(number for number, _ in runs)
        default = max(counts, key=lambda number: (counts[number], number))
    values = ordered.values
    rules = tuple(
        BucketRule(f"[{values[run[0]]}, {values[run[-1]]}]", number, "range")
        for number, run in runs
        if number != default
    )
    return BucketRules(rules, default)


@dataclass(slots=True)
class _Chosen:
    """Partitions that are named exactly, by number; folders, by depth and number."""

    exact: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    folders: defaultdict[tuple[int, int], list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def rules(self) -> Iterator[BucketRule]:
        """Stream the rules: exact ones first, then those of folders, the deepest first."""
        for number, paths in sorted(self.exact.items(), reverse=True):
            yield BucketRule(f"^{pattern_of(paths)}$", number)
        for (_, number), paths in sorted(self.folders.items(), reverse=True):
            yield BucketRule(f"^{pattern_of(paths)}", number)


@dataclass(slots=True)
class _Folder:
    """A folder of the tree: partitions directly in it, folders below it, and what they cost."""

    path: str
    depth: int
    partitions: dict[str, int] = field(default_factory=dict)
    below: dict[str, "_Folder"] = field(default_factory=dict)
    cost: dict[int, int] = field(default_factory=dict)

    def costs(self, numbers: Sequence[int]) -> Mapping[int, int]:
        """Return how many characters its rules take, by the number that holds around it."""
        own = dict.fromkeys(numbers, 0)
        lengths: Counter[int] = Counter()
        for path, number in self.partitions.items():
            lengths[number] += len(path) // 2 + 1
        every = sum(lengths.values())
        for number in numbers:
            own[number] = every - lengths[number]
        for folder in self.below.values():
            for number, cost in folder.costs(numbers).items():
                own[number] += cost
        self.cost = own
        if not self.path:
            return own
        best = self._rule + min(own.values())
        return {number: min(cost, best) for number, cost in own.items()}

    @property
    def _rule(self) -> int:
        return len(self.path) + _RULE

    def choose(self, around: int, chosen: _Chosen) -> None:
        """Choose the rules of the folder, given the number that holds around it."""
        if self.path:
            best = min(self.cost, key=lambda number: (self.cost[number], number))
            if self._rule + self.cost[best] < self.cost[around]:
                chosen.folders[self.depth, best].append(self.path)
                around = best
        for path, number in self.partitions.items():
            if number != around:
                chosen.exact[number].append(path)
        for folder in self.below.values():
            folder.choose(around, chosen)


def _tree(numbers: Mapping[str, int]) -> _Folder:
    root = _Folder("", 0)
    for path, number in numbers.items():
        place = root
        *above, _ = path.split("/")
        for part in above:
            if part not in place.below:
                place.below[part] = _Folder(f"{place.path}{part}/", place.depth + 1)
            place = place.below[part]
        place.partitions[path] = number
    return root


def pattern_of(texts: Iterable[str]) -> str:
    """Return a pattern that matches these texts and no others; Java and we read it alike.

    It holds no comma and no semicolon, which divide rules in a hashing config.
    """
    return _pattern(sorted(set(texts)), 0)


def _pattern(texts: Sequence[str], start: int) -> str:
    """Return the pattern of what follows ``start`` in sorted texts that agree before it."""
    first, last = texts[0], texts[-1]
    end = start
    while end < min(len(first), len(last)) and first[end] == last[end]:
        end += 1
    same = escaped(first[start:end])
    if len(texts) == 1:
        return same
    ends_here = len(first) == end
    going_on = texts[1:] if ends_here else texts
    # Characters that are followed by the same rest share it.
    signs: dict[str, list[str]] = {}
    for sign, group in groupby(going_on, key=lambda text: text[end]):
        signs.setdefault(_pattern(list(group), end + 1), []).append(sign)
    branches = [_one_of(found) + rest for rest, found in signs.items()]
    if ends_here:
        return f"{same}({'|'.join(branches)})?"
    if len(branches) == 1:
        return same + branches[0]
    return f"{same}({'|'.join(branches)})"


def _one_of(signs: Sequence[str]) -> str:
    """Return a pattern of one character among these, which are sorted."""
    if len(signs) == 1:
        return escaped(signs[0])
    parts = []
    at = 0
    while at < len(signs):
        end = at
        while end + 1 < len(signs) and ord(signs[end + 1]) == ord(signs[end]) + 1:
            end += 1
        if end - at >= 2:
            parts.append(f"{_in_class(signs[at])}-{_in_class(signs[end])}")
        else:
            parts.extend(_in_class(sign) for sign in signs[at : end + 1])
        at = end + 1
    return f"[{''.join(parts)}]"


def escaped(text: str) -> str:
    """Return a pattern of just this text."""
    return "".join(_escaped(sign) for sign in text)


def _escaped(sign: str) -> str:
    if sign in _SPECIAL:
        return f"\\{sign}"
    if _is_word(sign) or sign in _PLAIN:
        return sign
    return _by_code(sign)


def _in_class(sign: str) -> str:
    return sign if _is_word(sign) else _by_code(sign)


def _is_word(sign: str) -> bool:
    return sign.isascii() and sign.isalnum()


def _by_code(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02X}" if code < 0x100 else f"\\x{{{code:X}}}"
