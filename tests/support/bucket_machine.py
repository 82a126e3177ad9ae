"""A machine that writes, sets bucket rules, rescales, undoes, cleans and dies, beside a model.

No change of buckets changes a row: whatever happened, done or cut off, the head is what the
dictionary says, and the law of buckets holds, by our rules and by Hudi's.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from lakewright.api.table import Table
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.index.hashing_store import ConfigVersion, HashingStore
from lakewright.index.layout import layout_of
from lakewright.model.errors import Conflict, HistoryGone, Invalid, LakewrightError, Unavailable
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.access import TimelineAccess
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.model_table import Kind, ModelTable, Place, counted
from support.rescaling import check_law
from support.write_machine import (
    DONE,
    RULES,
    WriteMachine,
    buckets_with_files,
    by_us,
    create,
    rows_of,
    rules_of,
    same,
    setups,
)

DEFAULTS = (1, 2, 5, 8)


@dataclass(frozen=True, slots=True)
class Version:
    """Rules that count or did: what they are, the model just before, and whether rows moved."""

    instant: str
    kind: Kind
    numbers: dict[str, int]
    before: ModelTable
    moved: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of buckets is expected to make: rules, the partitions that move."""

    kind: Kind
    numbers: dict[str, int]
    moved: frozenset[str]
    #: The older version that it goes back to.
    back: Version | None = None


class BucketMachine(WriteMachine):
    """Random histories of one table; subclasses say of which shape."""

    # Verbs that do to buckets what others do, too.
    insert_what_is_missing = None
    bulk_insert = None
    delete_where = None
    insert_overwrite_table = None
    update = None
    merge = None
    delete_everything = None
    write_no_rows = None
    move = None
    upsert_at_a_given_instant = None

    def __init__(self) -> None:
        super().__init__()
        #: Every version that there was, and those that led to the one that counts.
        self.versions: dict[str, Version] = {}
        self.stack: list[Version] = []
        #: What was written before this may be gone.
        self.horizon = ""

    @initialize(data=st.data(), plain=st.booleans())
    def begin(self, data: st.DataObject, plain: bool) -> None:
        self.kind = data.draw(setups(self.shape), label="kind")
        if plain:
            self.kind = replace(self.kind, rules=())
        self.table = create(self.folder / "t", self.kind)
        self.model = ModelTable(self.kind)
        self.columns = [*self.kind.schema.names, "e", "_hoodie_commit_time", "_hoodie_record_key"]
        self._note_first()
        self.first = data.draw(rows_of(self.kind, most=8), label="first rows")
        self._mend()

    # ---------------------------------------------------------------------------------- steps

    @rule(data=st.data())
    def set_rules(self, data: st.DataObject) -> None:
        change = self._set(data)
        self._change("rules set", change, lambda t: t.buckets.set(rules_of(change.kind)))

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def rescale(self, data: st.DataObject) -> None:
        change, act = self._rescale(data)
        self._change("rescaled", change, act)

    @precondition(lambda self: self.past)
    @rule(steps=st.integers(1, 2))
    def undo(self, steps: int) -> None:
        change = self._undo(steps)
        if change is None:
            try:
                self.table.buckets.undo(steps=steps)
            except Invalid:
                DONE["nothing to undo"] += 1
                return
            raise AssertionError("there was nothing to undo")
        self._change("undone", change, lambda t: t.buckets.undo(steps=steps))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), steps=st.integers(1, 2), writes=st.booleans())
    def go_there_and_back(self, data: st.DataObject, steps: int, writes: bool) -> None:
        """Undo what was just done; rows that came between stay."""
        for _ in range(steps):
            self.rescale(data)
            if writes:
                self.upsert(data)
        self.undo(1)
        if steps == 2 and writes:
            self.set_rules(data)
        self.undo(1)

    @precondition(lambda self: self.past)
    @rule(data=st.data(), writes=st.booleans(), at=st.integers(0, 60), after=st.booleans())
    def cut_off_on_the_way_back(
        self, data: st.DataObject, writes: bool, at: int, after: bool
    ) -> None:
        self.rescale(data)
        if writes:
            self.upsert(data)
        self.cut_off(data, "undo", at, after, dies=True)

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def apply_a_plan_that_is_old(self, data: st.DataObject) -> None:
        """What was written after the plan is not lost: the plan is refused, or fits still."""
        change, _ = self._rescale(data, every=True)
        plan = self.table.buckets.plan_rescale(rules=rules_of(change.kind))
        self.upsert(data)
        # A plan that moves nothing sets the rules alone: partitions that came since are pinned.
        news = self._whole(change.kind) if plan.items else self._pinned(change.kind)
        try:
            self._change("old plans applied", news, lambda t: plan.apply())
        except Conflict:
            DONE["old plans refused"] += 1
            self._look()
            self.sound = True

    @precondition(lambda self: self.past)
    @rule(
        data=st.data(),
        what=st.sampled_from(("set", "rescale", "undo")),
        at=st.integers(0, 80),
        after=st.booleans(),
        dies=st.booleans(),
    )
    def cut_off(self, data: st.DataObject, what: str, at: int, after: bool, dies: bool) -> None:
        act: Callable[[Table], object]
        if what == "set":
            change = self._set(data)
            act = lambda t: t.buckets.set(rules_of(change.kind))  # noqa: E731
        elif what == "rescale":
            change, act = self._rescale(data)
        else:
            found = self._undo(1)
            if found is None:
                return
            change, act = found, lambda t: t.buckets.undo()
        error = Crash if dies else lambda: Unavailable("The storage was told to fail.")
        faults = [Fault(at=at, after=after, error=error)]
        storage = FaultyStorage(open_storage(self.table.path), faults)
        try:
            self._change(f"cut off: {what}", change, lambda _: act(Table(storage)))
        except (LakewrightError, Crash):
            DONE["cut off"] += 1
            self.broken = True
            # Whatever was done of it: rows are as before, buckets by the law, before any mending.
            self._settle(change)
            self._look()
            if what == "undo":
                self._finish_rollbacks(change)
            self.sound = True

    def _finish_rollbacks(self, change: Change) -> None:
        """Whoever comes next ends a rollback that was begun: the rules may go back only then."""
        state = open_state(open_storage(self.table.path))
        with TimelineAccess(state.storage, state.config, {}).repaired():
            pass
        self._settle(change)
        self._look()

    @precondition(lambda self: self.past)
    @rule(retain=st.integers(1, 3), archive=st.booleans())
    def tidy_up(self, retain: int, archive: bool) -> None:
        times = [instant.requested for instant in self.table.timeline.data()]
        self.table.clean(policy="commits", retain=retain)
        if archive:
            self.table.archive(min_commits=retain, max_commits=retain + 1)
        self.horizon = max(self.horizon, times[-retain] if len(times) >= retain else "")
        DONE["tidied up"] += 1
        self.broken = False
        self._look()

    # -------------------------------------------------------------------------------- changes

    def _set(self, data: st.DataObject) -> Change:
        return self._pinned(self._drawn(data))

    def _pinned(self, kind: Kind) -> Change:
        return Change(kind, dict(self.model.numbers), frozenset())

    def _rescale(
        self, data: st.DataObject, *, every: bool = False
    ) -> tuple[Change, Callable[[Table], object]]:
        own = self.kind.rules and not every and data.draw(st.booleans(), label="own rules")
        kind = self.kind if own else self._drawn(data)
        rules = None if own else rules_of(kind)
        if every or not data.draw(st.booleans(), label="some partitions"):
            return self._whole(kind), lambda t: t.buckets.plan_rescale(rules=rules).apply()
        live = sorted({partition for partition, _ in buckets_with_files(self.table)})
        chosen = live[::2]
        numbers = dict(self.model.numbers) | {p: kind.number(p) for p in chosen}
        moved = frozenset(p for p in chosen if numbers[p] != self.model.numbers[p])
        change = Change(kind, numbers, moved)
        return change, lambda t: t.buckets.plan_rescale(chosen, rules=rules).apply()

    def _whole(self, kind: Kind) -> Change:
        numbers = {p: kind.number(p) for p in self.model.numbers}
        return Change(kind, numbers, self._moving(numbers))

    def _undo(self, steps: int) -> Change | None:
        """What an undo leads to; None where so many rescales were not made."""
        moved = [place for place, version in enumerate(self.stack) if version.moved and place]
        if len(moved) < steps:
            return None
        target = self.stack[moved[-steps] - 1]
        there = {p: target.kind.number(p) for p in self.model.numbers} | target.numbers
        return Change(target.kind, there, self._moving(there), target)

    def _moving(self, numbers: dict[str, int]) -> frozenset[str]:
        live = {partition for partition, _ in buckets_with_files(self.table)}
        return frozenset(p for p in live if numbers[p] != self.model.numbers[p])

    def _drawn(self, data: st.DataObject) -> Kind:
        rules = data.draw(st.sampled_from((*RULES, (("^", 3),))), label="rules")
        default = data.draw(st.sampled_from(DEFAULTS), label="default")
        return replace(self.kind, rules=rules, buckets=default)

    def _change(self, what: str, change: Change, act: Callable[[Table], object]) -> None:
        self.sound = False
        try:
            act(self.table)
        except Conflict:
            if not self.broken:
                raise
            # What a dead writer left was taken back only now, in the partitions to be changed.
            act(self.table)
        DONE[what] += 1
        self.broken = False
        settled = self._settle(change)
        if change.back is not None:
            DONE[f"{what} by a rollback" if settled == "older" else f"{what} by a rescale"] += 1
            assert settled in {"older", "new"}
        else:
            same_rules = (self.stack[-1].kind.rules, self.stack[-1].kind.buckets)
            assert same_rules == (change.kind.rules, change.kind.buckets)
        assert {p: self.model.numbers[p] for p in change.moved if p in self._live()} == {
            p: change.numbers[p] for p in change.moved if p in self._live()
        }
        self._look()
        self.sound = True

    def _settle(self, change: Change) -> str:
        """Bring the model to the version that counts; say whether it is a new or older one."""
        now = self._newest()
        instant = FIRST_INSTANT if now is None else now.instant
        if instant == self.stack[-1].instant:
            return "same"
        if any(instant == version.instant for version in self.stack):
            self._roll_back(instant)
            return "older"
        assert instant not in self.versions, "what was undone counts again"
        before = self.model.copy()
        for slot in [slot for slot in self.model.slots if slot[0] in change.moved]:
            shown = self.model.visible(slot)
            if shown is None:
                del self.model.slots[slot]
            else:
                self.model.slots[slot] = Place(base=shown)
        self.kind = self.model.kind = change.kind
        self.model.numbers = dict(change.numbers)
        moved = bool(change.moved)
        if change.back is not None:
            place = self.stack.index(change.back)
            moved = change.back.moved
            del self.stack[place:]
        version = Version(instant, self.kind, dict(change.numbers), before, moved)
        self.versions[instant] = version
        self.stack.append(version)
        self.past.append((self.table.timeline.instant(instant), self.model.rows()))
        return "new"

    def _roll_back(self, instant: str) -> None:
        place = next(n for n, v in enumerate(self.stack) if v.instant == instant)
        undone = self.stack[place + 1]
        del self.stack[place + 1 :]
        numbers = self.model.numbers
        self.model = undone.before
        self.kind = self.model.kind
        for partition in numbers.keys() - self.model.numbers.keys():
            self.model.numbers[partition] = self.kind.number(partition)
        gone = {undone.instant, *(i for i in self.versions if i > undone.instant)}
        self.past = [(i, rows) for i, rows in self.past if i.requested not in gone]

    def _note_first(self) -> None:
        """Where a table has no rules, those come first that say the one number it has."""
        first = self._newest()
        assert first is None or first.instant == FIRST_INSTANT
        version = Version(FIRST_INSTANT, self.kind, {}, self.model.copy(), moved=False)
        self.versions[FIRST_INSTANT] = version
        self.stack.append(version)

    def _newest(self) -> ConfigVersion | None:
        state = open_state(open_storage(self.table.path))
        return HashingStore(state.storage).newest(state.timeline)

    # --------------------------------------------------------------------------------- checks

    def _live(self) -> set[str]:
        return {partition for partition, _ in buckets_with_files(self.table)}

    def _look(self) -> None:
        """Compare the head, and count groups and hash rows anew."""
        numbers = check_law(open_storage(self.table.path))
        layout = layout_of(open_state(open_storage(self.table.path)), {})
        assert layout.buckets is not None
        for partition in self.model.numbers.keys() - numbers.keys():
            # Without files there is nothing that a number must agree with.
            self.model.numbers[partition] = layout.buckets.number_of(partition)
        self.check_head()
        DONE["looks"] += 1

    def check_head(self) -> None:
        super().check_head()
        if not self.kind.rules:
            for partition, _ in buckets_with_files(self.table):
                self.model.numbers.setdefault(partition, self.kind.buckets)

    def teardown(self) -> None:
        try:
            if self.past and self.sound:
                if self.broken:
                    self._mend()
                self._look()
                self._check_past()
                report = self.table.fsck(deep=True)
                assert report.ok, report.problems
                found = self.table.buckets.check()
                assert found.ok, found.problems
                DONE["histories"] += 1
        finally:
            self.past = []
            super().teardown()

    def _check_past(self) -> None:
        for instant, rows in self.past:
            try:
                seen = by_us(self.table.scan(meta=True, as_of=instant.requested))
            except HistoryGone:
                assert instant.requested < self.horizon, f"{instant} must be readable"
                continue
            expected: Any = counted(rows, self.columns)
            same(counted(seen, self.columns), expected, f"as of {instant}")
            DONE["instants read"] += 1


def bucket_machine_of(shape: Kind) -> type[BucketMachine]:
    """A machine class for one shape of table."""
    name = f"Buckets_{shape}".replace("-", "_")
    return type(name, (BucketMachine,), {"shape": shape})
