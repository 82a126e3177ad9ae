"""A machine that writes and looks after a table in random order, beside a dictionary model.

Writers are those of the write machine. Between them services are planned, carried out, cut off
and taken back. After each step the head is compared and the format checked; at the end, and
after each cleaning, every instant and every window that must still be readable.
"""

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import lakewright as lw
from lakewright.actions.buckets.rescale_slices import finished_slices
from lakewright.api.table import Table
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.model.errors import (
    Conflict,
    HistoryGone,
    InstantNotFound,
    LakewrightError,
    Unavailable,
    Unsupported,
)
from lakewright.model.instant import Action, Instant
from lakewright.storage.open import open_storage
from lakewright.table.pins import Pin, add_pin
from lakewright.table.state import open_state
from lakewright.timeline.plans import is_plan
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.model_table import Group, Kind, ModelTable, Slot, Stored, counted
from support.service_scenarios import carry_out, schedule
from support.write_machine import DONE, WriteMachine, by_us, same


@dataclass(frozen=True, slots=True)
class Made:
    """What a plan makes of the slots of its groups."""

    slots: tuple[Slot, ...]
    groups: tuple[Group, ...]
    rows: Mapping[Slot, Stored]


@dataclass(frozen=True, slots=True)
class Reader:
    """A scan that was opened, the rows of that time, and what had taken effect by then."""

    scan: lw.Scan
    rows: list[dict[str, Any]]
    newest: str
    merged: frozenset[str]


class ServiceMachine(WriteMachine):
    """Random writes and services on one table; subclasses say of which shape."""

    # Of the write machine's verbs those that differ in what they leave for services.
    insert_what_is_missing = None
    bulk_insert = None
    evolve = None
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
        #: The model after each write, as it was then.
        self.states: dict[str, ModelTable] = {}
        #: The plans that merge files, and those that have been carried out.
        self.plans: dict[str, Made] = {}
        self.merged: set[str] = set()
        #: Completed instants of services that are data instants, too.
        self.services: set[str] = set()
        self.file_of: dict[Slot, str] = {}
        self.saved: set[str] = set()
        #: What was written at this time or later must be readable.
        self.horizon = ""
        self.readers: list[Reader] = []
        #: Files that no cleaning may take.
        self.pinned: set[str] = set()

    # -------------------------------------------------------------------------------- services

    @property
    def merging(self) -> tuple[str, ...]:
        """The services that rewrite this table's files."""
        found = ["clustering"] if hasattr(Table, "cluster") else []
        if self.kind.mor:
            found.append("compaction")
            if self.kind.version == 9:
                found.append("log_compaction")
        return tuple(found)

    @precondition(lambda self: self.past and self.merging)
    @rule(data=st.data())
    def schedule(self, data: st.DataObject) -> None:
        service = data.draw(st.sampled_from(self.merging), label="service")
        self._serve(f"schedule {service}", lambda: schedule(self.table, service))

    @precondition(lambda self: self.past and self.merging)
    @rule(data=st.data())
    def carry_out(self, data: st.DataObject) -> None:
        service = data.draw(st.sampled_from(self.merging), label="service")
        self._serve(service, lambda: carry_out(self.table, service))

    @precondition(lambda self: self.past)
    @rule(
        policy=st.sampled_from(("commits", "versions", "commits", "hours")),
        retain=st.integers(1, 3),
        apart=st.booleans(),
    )
    def clean(self, policy: str, retain: int, apart: bool) -> None:
        if policy != "hours":
            self._expect_cleaning(retain if policy == "commits" else 0)
        wish = {"policy": policy, "retain": retain}
        if apart:
            self._serve("schedule cleaning", lambda: self.table.schedule_cleaning(**wish))
        self._serve(f"clean by {policy}", lambda: self.table.clean(**wish))
        self.check_past()

    @precondition(lambda self: self.past)
    @rule(least=st.integers(1, 2), more=st.integers(1, 2))
    def archive(self, least: int, more: int) -> None:
        self._serve(
            "archive",
            lambda: self.table.archive(min_commits=least, max_commits=least + more),
        )
        self.check_past()

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def savepoint(self, data: st.DataObject) -> None:
        choice = [i.requested for i, _ in self.past if i.requested >= self.horizon]
        if not choice:
            return  # a service wrote last, and the cleaning kept no more than that
        instant = data.draw(st.sampled_from(choice), label="instant")
        active = {i.requested for i in self.table.timeline.data()}
        if instant in self.saved or instant not in active:
            return
        self._serve("savepoint", lambda: self.table.savepoint(instant, "kept"))
        self.saved.add(instant)

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def delete_savepoint(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from(sorted(self.saved)), label="instant")
        self.saved.remove(instant)
        self._serve("delete_savepoint", lambda: self.table.delete_savepoint(instant))

    @precondition(lambda self: len(self.past) > 1)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        instant = data.draw(st.sampled_from([i.requested for i, _ in self.past]), label="instant")
        self._undo("restore", self._can_restore(instant), lambda t: t.restore(instant))

    @precondition(lambda self: len(self.past) > 1)
    @rule()
    def roll_back_the_newest(self) -> None:
        newest = max(self.table.timeline.data(), key=lambda i: i.completed or "")
        self._undo("rollback", False, lambda t: t.rollback(newest.requested))

    @precondition(lambda self: self.past and self._waiting())
    @rule(data=st.data())
    def roll_back_a_plan(self, data: st.DataObject) -> None:
        plan = data.draw(st.sampled_from(self._waiting()), label="plan")
        self._undo(
            "rollback of a plan", self.kind.version == 9, lambda t: t.rollback(plan.requested)
        )

    @precondition(lambda self: self.past)
    @rule()
    def pin_the_files_of_the_head(self) -> None:
        files: dict[str, frozenset[str]] = {}
        state = open_state(open_storage(self.table.path))
        for snapshot in self.table.get_latest_snapshot():
            # What a write that failed has left goes with it, in old tables a log of the slice.
            slices = finished_slices(state, snapshot.file_slices)
            paths = [path for piece in slices for path in piece.paths]
            self.pinned.update(paths)
            names = frozenset(path.rpartition("/")[2] for path in paths)
            files[snapshot.descriptor.path] = names
        pin = Pin(f"undo-{len(self.pinned)}-{DONE['pins']}", time.time() + 3600, "undo", files)
        add_pin(open_storage(self.table.path), pin)
        DONE["pins"] += 1

    @precondition(lambda self: self.past)
    @rule()
    def open_a_reader(self) -> None:
        newest = max(i.requested for i in self.table.timeline.data())
        scan = self.table.scan(meta=True)
        scan.plan()
        self.readers.append(Reader(scan, self.model.rows(), newest, frozenset(self.merged)))

    @precondition(lambda self: self.past)
    @rule(data=st.data(), at=st.integers(0, 60), after=st.booleans(), dies=st.booleans())
    def cut_off(self, data: st.DataObject, at: int, after: bool, dies: bool) -> None:
        names = (*self.merging, "clean", "archive", "savepoint", "restore", "rollback", "write")
        name = data.draw(st.sampled_from(names), label="cut off")
        error = Crash if dies else lambda: Unavailable("The storage was told to fail.")
        storage = FaultyStorage(
            open_storage(self.table.path), [Fault(at=at, after=after, error=error)]
        )
        self._cut_off(name, storage)

    # ----------------------------------------------------------------------------- cutting off

    def _cut_off(self, name: str, storage: FaultyStorage) -> None:
        active = [i.requested for i in self.table.timeline.data()]
        writes = [i.requested for i, _ in self.past if i.requested in active]
        rows = self.first
        undoes = name in {"restore", "rollback"}
        if undoes and (len(writes) < 2 or self._is_held()):
            return
        target = writes[-2] if undoes else ""
        acts: dict[str, Callable[[Table], object]] = {
            "clean": lambda t: t.clean(policy="commits", retain=1),
            "archive": lambda t: t.archive(min_commits=1, max_commits=2),
            "savepoint": lambda t: t.savepoint(active[-1]),
            "restore": lambda t: t.restore(target),
            "rollback": lambda t: t.rollback(active[-1]),
            "write": lambda t: t.upsert(self._rows(rows)),
        }
        if name == "clean":
            self._expect_cleaning(1)
        self.sound = False
        self.broken = True
        DONE[f"cut off: {name}"] += 1
        try:
            acts.get(name, lambda t: carry_out(t, name))(Table(storage))
            ended = True
        except (LakewrightError, Crash):
            ended = False
        DONE["cut off"] += not ended
        if name == "write":
            self._note_write(lambda m, t: m.upsert(rows, t))
        if name == "savepoint":
            self._note_savepoints()
        self._finish(undone=undoes)

    def _note_write(self, expect: Callable[[ModelTable, str], None]) -> None:
        self.model.groups = lambda: self.groups_before
        for instant in self._news():
            expect(self.model, instant.requested)
            self.past.append((instant, self.model.rows()))
            self.states[instant.requested] = self.model.copy()

    def _note_savepoints(self) -> None:
        found = self.table.timeline.by_action(Action.SAVEPOINT)
        self.saved = {i.requested for i in found if i.is_completed}

    # ------------------------------------------------------------------------------- plumbing

    def _serve(self, what: str, act: Callable[[], object]) -> None:
        self.sound = False
        act()
        DONE["services"] += 1
        DONE[what] += 1
        self._finish()

    def _undo(self, what: str, must: bool, act: Callable[[Table], object]) -> None:
        self.sound = False
        try:
            act(self.table)
        except (Conflict, HistoryGone, InstantNotFound, Unsupported) as refused:
            if must:
                raise AssertionError(f"{what} must be possible") from refused
            DONE[f"{what} refused"] += 1
        else:
            DONE["services"] += 1
            DONE[what] += 1
        self._finish(undone=True)

    def _finish(self, *, undone: bool = False) -> None:
        """Bring the model to where the timeline is, and compare."""
        if undone:
            if any(i.action in (Action.RESTORE, Action.ROLLBACK) for i in self._pending()):
                # Whoever writes next finishes it; until then each state on the way may be seen.
                self._finish_undoing()
            self._step_back()
        self._step_on()
        self.check_head()
        self._look_up()
        self.check_format()
        self.groups_before = self._buckets()
        self.sound = True

    def _finish_undoing(self) -> None:
        seen = counted(by_us(self.table.scan(meta=True)), self.columns)
        states = [self._as_of(i.requested) for i, _ in self.past]
        rows = [counted(m.rows(), self.columns) for m in (self.model, *states)]
        assert seen in rows, "a state that never was"
        self._serve_pending()

    def _serve_pending(self) -> None:
        """Let a plan be made that nobody needs: whoever plans finishes what was begun."""
        from lakewright.timeline.storage_upkeep import StorageUpkeep

        with self.table._servicing(None) as work:
            assert isinstance(work.upkeep, StorageUpkeep)
            work.upkeep.schedule(Action.CLEAN, lambda view, taken: None)

    def _step_back(self) -> None:
        """Forget what was taken back."""
        known = {i.requested for i in self.table.timeline.with_history().data()}
        self.past = [(i, rows) for i, rows in self.past if i.requested in known]
        self.services &= known
        self.merged &= known
        last = self.past[-1][0].requested
        self.horizon = min(self.horizon, max(known))
        self.model = self._as_of(last)
        waiting = {i.requested for i in self._pending()}
        for plan, made in self.plans.items():
            if plan in waiting and plan > last:
                slots = [slot for slot in made.slots if slot in self.model.slots]
                self.model.plan_merging(plan, slots, made.groups)
        # What belongs to writes that were taken back goes with them.
        self.pinned &= self._files()
        self.readers = [r for r in self.readers if r.newest in known and r.merged <= self.merged]

    def _step_on(self) -> None:
        """Learn which plans were made, and which carried out."""
        view = self.table.timeline
        known = {i.requested for i, _ in self.past} | self.services
        done = [i for i in view.data() if i.requested not in known]
        for instant in (*view.pending(), *done):
            plan = view.plan(instant) if instant.action.completes_as.writes_data else None
            if instant.requested not in self.plans:
                self._learn(instant.requested, plan)
        for instant in done:
            planned = view.planned_as(instant)
            assert instant.requested in self.plans or planned is Action.LOGCOMPACTION, instant
            self.services.add(instant.requested)
            if planned is not Action.LOGCOMPACTION:
                self.merged.add(instant.requested)
                made = self.plans[instant.requested]
                self.model = self.model.merged({instant.requested: made.rows})

    def _learn(self, requested: str, plan: object) -> None:
        match plan:
            case CompactionPlan():
                if self.table.timeline.instant(requested).action is Action.LOGCOMPACTION:
                    return
                named = {(op.partition, op.file_id) for op in plan.operations}
            case ReplacePlan(clustering=clustering) if clustering is not None:
                named = {(s.partition, s.file_id) for g in clustering.groups for s in g.slices}
            case _:
                return
        groups: tuple[Group, ...] = ()
        if self.kind.index == "bucket":
            groups = tuple((partition, int(file_id[:8])) for partition, file_id in named)
            slots = [s for s in self.model.slots if self.model.group(s) in groups]
        else:
            slots = [s for s in self.model.slots if (s[0], self.file_of.get(s)) in named]
        rows = {slot: self.model.visible(slot) for slot in slots}
        found = {slot: stored for slot, stored in rows.items() if stored is not None}
        self.plans[requested] = Made(tuple(slots), groups, found)
        self.model.plan_merging(requested, slots, groups)

    def _as_of(self, requested: str) -> ModelTable:
        """What a reading as of a write finds: with what was planned before it and merged since."""
        done = {plan: self.plans[plan].rows for plan in self.merged}
        return self.states[requested].merged(done)

    def _pending(self) -> tuple[Instant, ...]:
        return self.table.timeline.pending()

    def _waiting(self) -> list[Instant]:
        view = self.table.timeline
        entries = (e for e in view.entries if not e.instant.is_completed)
        return [e.instant for e in entries if is_plan(view, e)]

    def _is_held(self) -> bool:
        """Whether something stands in the way of taking the newest back."""
        return bool(self.saved or self.broken or self._pending())

    def _buckets(self) -> set[Group]:
        if self.kind.index != "bucket":
            return set()
        return {
            (piece.group.partition, int(piece.group.file_id[:8]))
            for partition in self.table.get_latest_snapshot()
            for piece in partition.file_slices
        }

    def _files(self) -> set[str]:
        return {file.path for file in open_storage(self.table.path).list("", recursive=True)}

    def _look_up(self) -> None:
        """Note in which file groups the rows are that were read last."""
        for row in self.head:
            slot = (row["_hoodie_partition_path"], row["_hoodie_record_key"])
            self.file_of[slot] = row["_hoodie_file_name"].partition("_")[0]

    def _expect_cleaning(self, retain: int) -> None:
        """Move the horizon to what a cleaning keeps: so many commits, or the newest alone."""
        times = [i.requested for i in self.table.timeline.data()]
        if retain == 0:
            self.horizon = max(self.horizon, times[-1])
            return
        if len(times) <= retain:
            return
        bound = times[-retain]
        for plan in self._waiting():
            before = [time for time in times if time < plan.requested]
            bound = min(bound, before[-1] if before else "")
        self.horizon = max(self.horizon, bound)

    def _can_restore(self, instant: str) -> bool:
        active = {i.requested for i in self.table.timeline.data()}
        kept = not any(saved > instant for saved in self.saved)
        return instant >= self.horizon and instant in active and kept and not self.broken

    def _commit(
        self,
        verb: str,
        options: Mapping[str, str],
        act: Callable[[Mapping[str, str]], Any],
        expect: Callable[[ModelTable, str], None],
    ) -> None:
        super()._commit(verb, options, act, expect)
        for instant, _ in self.past:
            self.states.setdefault(instant.requested, self.model.copy())
        self.sound = False
        self._look_up()
        self.check_format()
        self.groups_before = self._buckets()
        self.sound = True

    def _tried(self, act: Callable[..., Any], options: Mapping[str, str]) -> Any:
        try:
            return super()._tried(act, options)
        except Conflict:
            # Groups that a clustering waits for are not written.
            if not any(self._is_clustering(i) for i in self._waiting()):
                raise
        DONE["held off by a clustering"] += 1
        return None

    def _is_clustering(self, plan: Instant) -> bool:
        return isinstance(self.table.timeline.plan(plan), ReplacePlan)

    def _news(self) -> list[Any]:
        return [i for i in super()._news() if i.requested not in self.services]

    @property
    def hudi_reads(self) -> bool:
        """The hudi package passes over logs after a planned compaction in version 6 tables."""
        old = self.kind.version == 6 and self.kind.mor
        return super().hudi_reads and not (old and self._waiting())

    # --------------------------------------------------------------------------------- checks

    def check_format(self) -> None:
        report = self.table.fsck()
        assert report.ok, report.problems
        gone = self.pinned - self._files() if self.pinned else None
        assert not gone, f"pinned, and gone: {gone}"
        DONE["checks"] += 1

    def _promised(self, reader: Reader) -> bool:
        late = self.merged - reader.merged
        return reader.newest >= self.horizon and all(plan >= self.horizon for plan in late)

    def check_past(self) -> None:
        """Compare every instant and window that must be there, and readers that were opened."""
        ends: list[Any] = [None, *(instant.completed for instant, _ in self.past)]
        times = [instant.requested for instant, _ in self.past]
        windows = dict(zip(times, itertools.pairwise(ends), strict=True))
        for instant, rows in self.past:
            requested = instant.requested
            must = requested >= self.horizon or requested in self.saved
            try:
                seen = by_us(self.table.scan(meta=True, as_of=requested))
            except HistoryGone:
                assert not must, f"{requested} must be readable, horizon {self.horizon}"
                DONE["gone"] += 1
                continue
            DONE["instants read"] += 1
            expected = self._as_of(requested)
            if requested in self.saved and requested < self.horizon:
                # What was merged after the savepoint may be cleaned, and its parts read instead.
                expected = self._nearer(requested, seen)
            rows_then = counted(expected.rows(), self.columns)
            same(counted(seen, self.columns), rows_then, f"as of {requested}")
            if must and requested >= self.horizon:
                self._check_window(instant, rows, *windows[requested])
        self.readers = [reader for reader in self.readers if self._promised(reader)]
        for reader in self.readers:
            DONE["readers"] += 1
            expected = counted(reader.rows, self.columns)
            same(counted(by_us(reader.scan), self.columns), expected, f"opened at {reader.newest}")

    def _nearer(self, requested: str, seen: list[dict[str, Any]]) -> ModelTable:
        then = self.states[requested]
        found = counted(seen, self.columns) == counted(then.rows(), self.columns)
        return then if found else self._as_of(requested)

    def _check_window(
        self, instant: Instant, rows: list[dict[str, Any]], start: str | None, end: str
    ) -> None:
        if start is None:
            return
        if self.kind.version == 6:
            rows = self._as_of(instant.requested).rows()
        news = [row for row in rows if row["_hoodie_commit_time"] == instant.requested]
        expected = counted(news, self.columns)
        here = counted(by_us(self.table.incremental(start, end, meta=True)), self.columns)
        late = self.kind.mor and self.kind.ordering is not None
        same(here & expected if late else here, expected, f"the window of {instant}")
        DONE["windows"] += 1

    def teardown(self) -> None:
        try:
            if self.past and self.sound:
                while any(self._is_clustering(i) for i in self._waiting()):
                    self._serve("clustering", lambda: carry_out(self.table, "clustering"))
                self._mend()
                self.check_past()
                report = self.table.fsck(deep=True)
                assert report.ok, report.problems
                strange = [note for note in report.notes if note.code == "orphan-file"]
                assert not strange, strange
                times = [i.requested for i in self.table.timeline.with_history().data()]
                mine = {i.requested for i, _ in self.past} | self.services
                assert times == sorted(mine)
                DONE["histories"] += 1
        finally:
            self.past = []
            super().teardown()


def service_machine_of(shape: Kind) -> type[ServiceMachine]:
    """A machine class for one shape of table."""
    name = f"Services_{shape}".replace("-", "_")
    return type(name, (ServiceMachine,), {"shape": shape})
