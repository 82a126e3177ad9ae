"""Which instants count for a reading, decided once from the timeline and asked once per file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.file_names import BASE_EXTENSIONS
from lakewright.timeline.committed import Committed

#: By partition, then by file id: the instant that replaced the group, or that will compact it.
GroupInstants = Mapping[str, Mapping[str, str]]


class Answers(dict[str, bool]):
    """A yes or no per instant, worked out on the first question.

    Instants are few and files are many, so that a dictionary lookup is all a file costs.
    """

    def __init__(self, judge: Callable[[str], bool]) -> None:
        super().__init__()
        self._judge = judge

    def __missing__(self, instant: str) -> bool:
        answer = self[instant] = instant.isdigit() and self._judge(instant)
        return answer


class Endings(dict[str, str]):
    """From the end of a base file's name (instant and extension) to the instant, if it is shown.

    Anything else answers with the empty text. A table has few different endings.
    """

    def __init__(self, shown: Answers) -> None:
        super().__init__()
        self._shown = shown

    def __missing__(self, ending: str) -> str:
        instant, _, extension = ending.partition(".")
        answer = instant if extension in BASE_EXTENSIONS and self._shown[instant] else ""
        self[ending] = answer
        return answer


@dataclass(frozen=True)
class Visibility:
    """The part of a table's history that a reading sees.

    ``completions`` maps the requested times of completed writes to their completion times;
    ``start`` is the time before which files are committed (``TimelineView.committed_before``)
    and ``pending`` the writes under way. ``as_of`` bounds requested times, as Hudi's time
    travel does; ``upto`` bounds completion times, as its incremental reading does in layout 2.
    ``replaced`` holds the groups that are gone for this reading, ``compactions`` those with an
    unfinished compaction.

    ``completion_of`` knows archived writes too and may have to read the history for them, as
    ``is_archived`` may, which is asked about times within the timeline that it does not know;
    ``named_by`` gives the paths that a completed write lists, where its metadata is at hand.
    """

    layout: int
    completions: Mapping[str, str]
    start: str | None
    pending: frozenset[str] = frozenset()
    as_of: str | None = None
    upto: str | None = None
    replaced: GroupInstants = field(default_factory=dict)
    compactions: GroupInstants = field(default_factory=dict)
    completion_of: Callable[[str], str | None] = field(default=lambda requested: requested)
    is_archived: Callable[[str], bool] = field(default=lambda requested: False)
    named_by: Callable[[str], frozenset[str]] = field(default=lambda requested: frozenset())

    def __post_init__(self) -> None:
        judge = Committed.of(self.completions, self.start, self.pending)
        object.__setattr__(self, "_judge", judge)
        object.__setattr__(self, "committed", Answers(self._is_committed))
        object.__setattr__(self, "shown", Answers(self._is_shown))
        object.__setattr__(self, "shown_endings", Endings(self.shown))

    _judge: Committed = field(init=False, repr=False, compare=False)
    #: Whether files of an instant belong to the table at all.
    committed: Answers = field(init=False, repr=False, compare=False)
    #: Whether, besides, this reading looks at them.
    shown: Answers = field(init=False, repr=False, compare=False)
    #: The same by the end of a base file's name.
    shown_endings: Endings = field(init=False, repr=False, compare=False)

    def within(self, requested: str) -> bool:
        """Whether a requested time lies within the bounds, whatever became of it."""
        limits = (bound for bound in (self.as_of, self.upto) if bound is not None)
        return all(requested <= bound for bound in limits)

    def _is_committed(self, instant: str) -> bool:
        return self._judge.holds(instant, self.is_archived)

    def _is_shown(self, instant: str) -> bool:
        if not self.committed[instant]:
            return False
        if self.as_of is not None and instant > self.as_of:
            return False
        return self.upto is None or self._completed(instant, self.upto) <= self.upto

    def _completed(self, instant: str, upto: str) -> str:
        known = self.completions.get(instant)
        if known is None and (self.start is None or upto < self.start):
            known = self.completion_of(instant)  # the bound itself lies in the archived past
        return known or instant
