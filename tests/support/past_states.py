"""Short random histories of a merge-on-read table, and all its past compared with a model.

The steps are those whose order decides what the past looks like: logs written on top of a plan,
groups that are replaced before the plan is carried out, savepoints that keep a write on the
timeline while those around it are archived, and going back.
"""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import lakewright as lw
from lakewright.model.errors import Conflict, HistoryGone, InstantNotFound, Unsupported
from lakewright.model.instant import Instant

Rows = dict[str, int]
Step = Callable[[], None]

#: Partition "p=a" has the keys a1 to a3, and so on.
_KEYS = [f"{partition}{number}" for partition in "ab" for number in (1, 2, 3)]
_SCHEMA = "id string, p string, n bigint, ts bigint"
#: What may be refused, and how: the step has then done nothing.
_REFUSED = (Conflict, HistoryGone, InstantNotFound, Unsupported)


@dataclass
class PastStates:
    """A table, what its rows must be, and what they were after each write."""

    path: str
    version: int
    seed: int
    rows: Rows = field(default_factory=dict)
    past: list[tuple[Instant, Rows]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)

    def run(self, stories: int) -> None:
        """Tell so many random stories; look at the head after each step, and at the past."""
        self.draw = random.Random(self.seed)
        self.number = 0
        lw.create_table(
            self.path,
            schema=_SCHEMA,
            key="id",
            order_by="ts",
            partition_by="p",
            type="MERGE_ON_READ",
            version=self.version,
        )
        self._upsert(_KEYS)
        for _ in range(stories):
            self._tell()
            self.check_past()

    def check_past(self) -> None:
        """Read the table as of every write, and every window between two neighbours."""
        for place, (instant, rows) in enumerate(self.past):
            try:
                seen = self._read(as_of=instant.requested)
            except HistoryGone:
                self.done["gone"] += 1
            else:
                self.done["as of"] += 1
                assert seen == rows, self._told(f"as of write {place}")
        for place in range(1, len(self.past)):
            self._check_window(place)

    def _check_window(self, place: int) -> None:
        (first, before), (last, after) = self.past[place - 1 : place + 1]
        table = lw.open_table(self.path)
        try:
            found = table.incremental(first.completed, last.completed).to_arrow().to_pylist()
        except HistoryGone:
            return
        wanted = {key: n for key, n in after.items() if before.get(key) != n}
        seen = {row["id"]: row["n"] for row in found}
        assert seen == wanted, self._told(f"the window of write {place}")

    # ------------------------------------------------------------------------------- steps

    def _tell(self) -> None:
        """Take the steps of one of the stories in order, now and then with another between."""
        for step in self.draw.choice(self._stories()):
            if self.draw.random() < 0.2:
                self._take(self.draw.choice((self._upsert_some, self._delete)))
            self._take(step)

    def _stories(self) -> list[list[Step]]:
        replace = self.draw.choice((self._drop, self._overwrite))
        return [
            [self._upsert_some, self._upsert_some],
            [self._schedule, self._upsert_some, replace, self._compact],
            [self._save_newest, self._archive, self._save_all],
            [self._save_newest, self._compact, self._clean, self._archive, self._restore_newest],
            [self._compact_some],
            [self._compact, self._clean],
            [self._archive],
            [self._restore],
            [self._free],
        ]

    def _take(self, step: Step) -> None:
        name = step.__name__.strip("_")
        try:
            step()
        except _REFUSED as refused:
            name += f" ({type(refused).__name__})"
        self.done[name] += 1
        self.trace.append(name)
        assert self._read() == self.rows, self._told("the head")

    def _upsert_some(self) -> None:
        self._upsert(self.draw.sample(_KEYS, self.draw.randint(1, 3)))

    def _upsert(self, keys: list[str]) -> None:
        rows = self._made(keys)
        self._write(
            lambda t: t.upsert(rows), {**self.rows, **{row["id"]: row["n"] for row in rows}}
        )

    def _delete(self) -> None:
        key = self.draw.choice(_KEYS)
        self._write(lambda t: t.delete([key]), {k: n for k, n in self.rows.items() if k != key})

    def _drop(self) -> None:
        left = {k: n for k, n in self.rows.items() if k[0] != "b"}
        self._write(lambda t: t.delete_partitions(["p=b"]), left)

    def _overwrite(self) -> None:
        rows = self._made([self.draw.choice("ab") + "9"])
        [row] = rows
        left = {k: n for k, n in self.rows.items() if k[0] != row["p"]}
        self._write(lambda t: t.insert_overwrite(rows), {**left, row["id"]: row["n"]})

    def _schedule(self) -> None:
        lw.open_table(self.path).schedule_compaction()

    def _compact(self) -> None:
        lw.open_table(self.path).compact()

    def _compact_some(self) -> None:
        lw.open_table(self.path).compact(partitions=["p=a"])

    def _save_all(self) -> None:
        for instant in lw.open_table(self.path).timeline.data():
            self._save(instant)

    def _save_newest(self) -> None:
        self._save(lw.open_table(self.path).timeline.data()[-1])

    def _save(self, instant: Instant) -> None:
        table = lw.open_table(self.path)
        if instant.requested not in {saved.instant.requested for saved in table.savepoints()}:
            with suppress(HistoryGone):
                table.savepoint(instant.requested)

    def _free(self) -> None:
        table = lw.open_table(self.path)
        for saved in table.savepoints():
            table.delete_savepoint(saved.instant.requested)

    def _archive(self) -> None:
        options = {"hoodie.clean.commits.retained": "1"}
        table = lw.open_table(self.path)
        table.archive(min_commits=1, max_commits=2, options=options)

    def _clean(self) -> None:
        lw.open_table(self.path).clean(policy="versions", retain=1)

    def _restore(self) -> None:
        self._restore_to(self.draw.randrange(len(self.past)))

    def _restore_newest(self) -> None:
        self._restore_to(len(self.past) - 1)

    def _restore_to(self, place: int) -> None:
        lw.open_table(self.path).restore(self.past[place][0].requested)
        del self.past[place + 1 :]
        self.rows = dict(self.past[place][1])

    # ----------------------------------------------------------------------------- support

    def _made(self, keys: list[str]) -> list[dict[str, object]]:
        self.number += 1
        n = self.number
        return [{"id": key, "p": key[0], "n": n, "ts": n} for key in keys]

    def _write(self, act: Callable[[lw.Table], lw.WriteResult], after: Rows) -> None:
        done = act(lw.open_table(self.path)).instant
        self.rows = after
        if done is not None:
            self.past.append((done, dict(after)))

    def _read(self, as_of: str | None = None) -> Rows:
        found = lw.open_table(self.path).scan(as_of=as_of).to_arrow().to_pylist()
        return {row["id"]: row["n"] for row in found}

    def _told(self, what: str) -> str:
        return f"{what}, version {self.version}, seed {self.seed}: {' / '.join(self.trace)}"
