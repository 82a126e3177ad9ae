"""A machine that writes random histories through every verb, beside a dictionary model.

After each step the head is compared; at the end of a history every instant, every window between
neighbouring instants, and the table's own checks. Both readers are asked: ours and the ``hudi``
package.
"""

import datetime as dt
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import lakewright as lw
from lakewright.actions.buckets.setting import set_rules
from lakewright.api.table import Table
from lakewright.index.layout import layout_of
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.errors import CommitStateUnknown, Unavailable
from lakewright.model.writing import WriteResult
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.faulty_storage import Outage
from support.model_table import DELETED, Group, Kind, ModelTable, Stored, Values, counted

META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")
BEGINNING = "19700101000000000"
MANY = ("a:1,b:2", "x/y", "日本", " ", "\uff5a", "k" * 70)
IDS = ("a", "b", "a,b", "a:b", "k=v", "50%", "ä", "😀", *MANY)
ORDERINGS = {
    pa.int64(): (0, 1, 2, 3, -5, 2**62),
    pa.float64(): (0.0, -0.0, 1.5, float("nan"), -1.0, float("inf")),
    pa.string(): ("", "a", "b", "ab", "9"),
    # The hudi package takes the first day of 1970 in a delete for no ordering value at all.
    pa.date32(): (dt.date(1970, 1, 2), dt.date(1969, 12, 31), dt.date(2024, 2, 29)),
    pa.decimal128(9, 2): (Decimal("0.00"), Decimal("-1.50"), Decimal("10.01")),
    pa.timestamp("us", "UTC"): (
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1969, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC),
    ),
}
POINTS = (
    None,
    {"a": None, "Of": None},
    {"a": 1, "Of": {"s": None}},
    {"a": -(2**31), "Of": {"s": "ö"}},
)
OPTIONS = (
    {},
    {"lakewright.write.driver-bytes": "0"},
    {"hoodie.parquet.small.file.limit": "0"},
    {"hoodie.logfile.data.block.format": "avro"},
    {"hoodie.write.record.positions": "false"},
)
#: Rules for the partitions that rows have here; any may follow any other.
RULES = (
    (("oslo", 2), ("^$", 3), ("^p=[^a-z]", 5)),
    (("a=b|s", 1), (r"\d", 7), ("^.?$", 4)),
    (("_", 4), ("o$", 3), ("", 6)),
)
#: Nothing here asks what survives a power cut, so that disks need not be waited for.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: What was done in this process, for the line that the tests print.
DONE: Counter[str] = Counter()


def rows_of(kind: Kind, **sizes: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Batches of rows for a table."""
    fields: dict[str, st.SearchStrategy[Any]] = {"id": st.sampled_from(IDS)}
    if kind.composite:
        fields["id"] = st.sampled_from((*IDS[:6], None, ""))
        fields["sub"] = st.sampled_from((1, -2, 2**40))
    if kind.partitioned:
        odd = ("x/y", "q:r", "50%25") if kind.url_encode else ("50%",)
        fields["p"] = st.sampled_from(("oslo", "são", None, "", "a=b", "5,5", *odd))
    if kind.ordering is not None:
        fields["ts"] = st.sampled_from(ORDERINGS[kind.ordering])
    fields |= {
        "s": st.sampled_from((None, "", "naïve", "😀", "a\nb", "null")),
        "n": st.sampled_from((None, 0, 7, -1, 2**63 - 1, -(2**63))),
        "w": st.sampled_from((None, 7, -(2**31))),
        "d": st.sampled_from((None, dt.date(1969, 12, 31), dt.date(9999, 12, 31))),
        "m": st.sampled_from((None, Decimal("-0.01"), Decimal("9999999.99"))),
        "x": st.sampled_from((None, float("nan"), -0.0, 1e300)),
    }
    if kind.rich:
        fields |= {
            "select": st.sampled_from(POINTS),
            "Group": st.sampled_from((None, [], [None], [*POINTS])),
            "map": st.sampled_from((None, [], [("", None), ("k", Decimal(10**19))])),
            "at": st.sampled_from((None, *ORDERINGS[pa.timestamp("us", "UTC")])),
            "raw": st.sampled_from((None, b"", b"\xff\x00")),
        }
    if kind.soft:
        fields[DELETED] = st.sampled_from((None, False, False, True))
    return st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=sizes.get("most", 6))


def setups(shape: Kind) -> st.SearchStrategy[Kind]:
    """Tables of one shape, with everything else open."""

    def build(
        ordering: pa.DataType | None,
        soft: bool,
        url_encode: bool,
        buckets: int,
        rich: bool,
        rules: tuple[tuple[str, int], ...],
    ) -> Kind:
        return Kind(
            mor=shape.mor,
            version=shape.version,
            partitioned=shape.partitioned,
            composite=shape.composite,
            index=shape.index,
            ordering=ordering,
            soft=soft and shape.index != "global",
            url_encode=url_encode,
            buckets=buckets,
            rich=rich,
            rules=rules if shape.rules else (),
        )

    orderings = st.sampled_from((pa.int64(), *ORDERINGS, None))
    buckets, either = st.sampled_from((1, 2, 5)), st.booleans()
    return st.builds(build, orderings, either, either, buckets, either, st.sampled_from(RULES))


def create(path: Path, kind: Kind, **more: Any) -> lw.Table:
    """Create a table of this kind."""
    properties = dict(more.pop("properties", {}))
    if kind.url_encode:
        properties["hoodie.datasource.write.partitionpath.urlencode"] = "true"
    if kind.index == "global":
        properties["hoodie.index.type"] = "GLOBAL_SIMPLE"
    if kind.index == "bucket":
        more["buckets"] = rules_json(rules_of(kind)) if kind.rules else kind.buckets
    return lw.create_table(
        path,
        schema=kind.schema,
        key=kind.key,
        partition_by=["p"] if kind.partitioned else [],
        order_by="ts" if kind.ordering is not None else None,
        type="MERGE_ON_READ" if kind.mor else "COPY_ON_WRITE",
        version=kind.version,
        properties=properties,
        **more,
    )


def rules_of(kind: Kind) -> BucketRules:
    rules = tuple(BucketRule(pattern, number) for pattern, number in kind.rules)
    return BucketRules(rules, kind.buckets)


def buckets_with_files(table: lw.Table) -> set[Group]:
    return {
        (piece.group.partition, int(piece.group.file_id[:8]))
        for partition in table.get_latest_snapshot()
        for piece in partition.file_slices
    }


def by_us(scan: lw.Scan) -> list[dict[str, Any]]:
    DONE["reads by us"] += 1
    return scan.to_arrow().to_pylist()


def by_hudi(path: Path | str, options: Any = None) -> list[dict[str, Any]]:
    """The rows that the hudi package reads."""
    import hudi

    DONE["reads by hudi"] += 1
    table = hudi.HudiTableBuilder.from_base_uri(str(path)).build()
    batches = table.read(options) if options is not None else table.read()
    rows = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    # Folders do not tell an empty text from null, files do; see the page of differences.
    return [{**row, "p": row["p"] or None} if "p" in row else row for row in rows]


def same(found: Counter[Any], expected: Counter[Any], what: str) -> None:
    """Compare rows, and tell the few that differ."""
    if found != expected:
        raise AssertionError(
            f"{what}: missing {list(expected - found)}, strange {list(found - expected)}"
        )


def hudi_as_of(instant: str) -> Any:
    import hudi

    return hudi.HudiReadOptions().with_as_of_timestamp(instant)


def hudi_window(start: str | None, end: str) -> Any:
    import hudi

    options = hudi.HudiReadOptions().with_query_type(hudi.HudiQueryType.Incremental)
    return options.with_start_timestamp(start or BEGINNING).with_end_timestamp(end)


class WriteMachine(RuleBasedStateMachine):
    """Random writes into one table; subclasses say of which shape."""

    shape: Kind
    spark: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-", dir=MEMORY))
        self.past: list[tuple[Any, list[dict[str, Any]]]] = []
        self.evolved = False
        self.sound = True
        #: A write has failed, and what it left behind waits for the next one.
        self.broken = False
        #: The rows that were read last.
        self.head: list[dict[str, Any]] = []

    # -------------------------------------------------------------------------------- steps

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.kind = data.draw(setups(self.shape), label="kind")
        self.table = create(self.folder / "t", self.kind)
        self.model = ModelTable(self.kind)
        self.columns = [*self.kind.schema.names, "e", *META]
        # Most of what can go wrong needs something that is there already.
        rows = data.draw(rows_of(self.kind, most=8), label="first rows")
        self.first = rows
        self._write(
            "upsert",
            data,
            lambda o: self.table.upsert(self._rows(rows), options=o),
            lambda m, t: m.upsert(rows, t),
        )

    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        rows = data.draw(rows_of(self.kind), label="rows")
        self._write(
            "upsert",
            data,
            lambda o: self.table.upsert(self._rows(rows), options=o),
            lambda m, t: m.upsert(rows, t),
        )

    @rule(data=st.data())
    def upsert_of_visible_keys(self, data: st.DataObject) -> None:
        live = list(self.model.live())
        rows = data.draw(rows_of(self.kind), label="rows")
        for row, slot in zip(rows, live, strict=False):
            stored = self.model.visible(slot)
            assert stored is not None
            row |= {name: stored.values[name] for name in (*self.kind.key, *self._partition())}
        self._write(
            "upsert",
            data,
            lambda o: self.table.upsert(self._rows(rows), options=o),
            lambda m, t: m.upsert(rows, t),
        )

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        rows = self._fresh(data.draw(rows_of(self.kind), label="rows"))
        self._write(
            "insert",
            data,
            lambda o: self.table.insert(self._rows(rows), options=o),
            lambda m, t: m.insert(rows, t),
        )

    @rule(data=st.data())
    def insert_what_is_missing(self, data: st.DataObject) -> None:
        rows = self._once(data.draw(rows_of(self.kind), label="rows"))
        self._write(
            "insert dedupe",
            data,
            lambda o: self.table.insert(self._rows(rows), dedupe=True, options=o),
            lambda m, t: m.insert(rows, t, dedupe=True),
        )

    @precondition(lambda self: len(self.past) > 1)
    @rule(data=st.data(), verb=st.sampled_from(("insert", "dedupe", "bulk_insert", "upsert")))
    def write_what_was_deleted(self, data: st.DataObject, verb: str) -> None:
        """Keys that were there once, in a history that is long enough to have lost some."""
        rows = data.draw(rows_of(self.kind), label="rows")
        names = (*self.kind.key, *self._partition())
        before = {self.kind.slot(old): old for _, rows in self.past[:-1] for old in rows}
        gone = [old for old in before.values() if not self._is_there(old)]
        for row, old in zip(rows, gone, strict=False):
            row |= {name: old[name] for name in names}
        if verb != "upsert":
            rows = self._once(rows) if verb == "dedupe" else self._fresh(rows)
        table = self._rows(rows)
        acts: dict[str, Callable[[Mapping[str, str]], WriteResult]] = {
            "insert": lambda o: self.table.insert(table, options=o),
            "dedupe": lambda o: self.table.insert(table, dedupe=True, options=o),
            "bulk_insert": lambda o: self.table.bulk_insert(table, options=o),
            "upsert": lambda o: self.table.upsert(table, options=o),
        }

        def expect(model: ModelTable, instant: str) -> None:
            if verb == "upsert":
                model.upsert(rows, instant)
            else:
                model.insert(rows, instant, dedupe=verb == "dedupe")

        self._write(f"{verb} of deleted keys", data, acts[verb], expect)

    @rule(data=st.data(), mode=st.sampled_from((None, "GLOBAL_SORT", "PARTITION_SORT")))
    def bulk_insert(self, data: st.DataObject, mode: str | None) -> None:
        rows = self._fresh(data.draw(rows_of(self.kind), label="rows"))
        self._write(
            "bulk_insert",
            data,
            lambda o: self.table.bulk_insert(self._rows(rows), sort_mode=mode, options=o),
            lambda m, t: m.insert(rows, t),
        )

    @rule(data=st.data())
    def evolve(self, data: st.DataObject) -> None:
        self.evolved = True
        rows = data.draw(rows_of(self.kind), label="rows")
        for number, row in enumerate(rows):
            row |= {"e": f"e{number}", "w": 2**40 + number}
        self._write(
            "upsert evolved",
            data,
            lambda o: self.table.upsert(self._rows(rows), options=o),
            lambda m, t: m.upsert(rows, t),
        )

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        live = list(self.model.live())
        rows = data.draw(rows_of(self.kind, most=3), label="rows")
        for row, slot in zip(rows[1:], live, strict=False):
            stored = self.model.visible(slot)
            assert stored is not None
            row |= stored.values
        names = [*self.kind.key, *self._partition()]
        schema = pa.schema([self.kind.schema.field(name) for name in names])
        frame = pa.Table.from_pylist([{n: r[n] for n in names} for r in rows], schema=schema)
        slots = self._found([self.kind.slot(row) for row in rows])
        self._write(
            "delete",
            data,
            lambda o: self.table.delete(frame, options=o),
            lambda m, t: m.delete(slots, t),
        )

    @rule(data=st.data(), number=st.sampled_from((0, 7, -1)))
    def delete_where(self, data: st.DataObject, number: int) -> None:
        slots = [s for s, r in self.model.live().items() if r.values["n"] == number]
        self._write(
            "delete where",
            data,
            lambda o: self.table.delete(f"n = {number}", options=o),
            lambda m, t: m.delete(slots, t),
        )

    @rule(data=st.data())
    def insert_overwrite(self, data: st.DataObject) -> None:
        rows = self._once(data.draw(rows_of(self.kind), label="rows"))
        rows = [row for row in rows if not self._is_elsewhere(row)]
        self._write(
            "insert_overwrite",
            data,
            lambda o: self.table.insert_overwrite(self._rows(rows), options=o),
            lambda m, t: m.overwrite(rows, t),
        )

    @rule(data=st.data())
    def insert_overwrite_table(self, data: st.DataObject) -> None:
        rows = self._once(data.draw(rows_of(self.kind), label="rows"))
        self._write(
            "insert_overwrite_table",
            data,
            lambda o: self.table.insert_overwrite_table(self._rows(rows), options=o),
            lambda m, t: m.overwrite(rows, t, whole=True),
        )

    @precondition(lambda self: self.shape.partitioned)
    @rule(data=st.data(), absent=st.booleans())
    def delete_partitions(self, data: st.DataObject, absent: bool) -> None:
        there = sorted({partition for partition, _ in self.model.live()})
        gone = [*there[:1], *(["p=nowhere"] if absent else [])]
        self._write(
            "delete_partitions",
            data,
            lambda o: self.table.delete_partitions(gone, options=o),
            lambda m, t: m.delete_partitions(gone),
        )

    @rule(data=st.data(), number=st.sampled_from((0, 7, -1)))
    def update(self, data: st.DataObject, number: int) -> None:
        rows = [
            {**stored.values, "s": "updated"}
            for stored in self.model.live().values()
            if stored.values["n"] == number
        ]
        self._write(
            "update",
            data,
            lambda o: self.table.update({"s": "'updated'"}, where=f"n = {number}", options=o),
            lambda m, t: m.upsert(rows, t),
        )

    @precondition(lambda self: self.shape.index != "global")
    @rule(data=st.data(), tidy=st.booleans())
    def merge(self, data: st.DataObject, tidy: bool) -> None:
        names = (*self.kind.key, *self._partition())
        drawn = self._once(data.draw(rows_of(self.kind), label="rows"))
        rows = [row for row in drawn if all(row[name] not in (None, "") for name in names)]
        slots = {self.kind.slot(row) for row in rows}
        others = [slot for slot in self.model.live() if slot not in slots]

        def expect(model: ModelTable, instant: str) -> None:
            model.upsert(rows, instant)
            if tidy:
                model.delete(others, instant)

        self._write(
            "merge",
            data,
            lambda o: self.table.merge(
                self._rows(rows),
                on=" AND ".join(f"t.{name} = s.{name}" for name in names),
                when_matched="update",
                when_not_matched="insert",
                when_not_matched_by_source="delete" if tidy else None,
                options=o,
            ),
            expect,
        )

    @rule(data=st.data())
    def delete_everything(self, data: st.DataObject) -> None:
        slots = list(self.model.live())
        self._write(
            "delete everything",
            data,
            lambda o: self.table.delete("TRUE", options=o),
            lambda m, t: m.delete(slots, t),
        )

    @rule(data=st.data(), verb=st.sampled_from(("insert", "upsert", "delete", "insert_overwrite")))
    def write_no_rows(self, data: st.DataObject, verb: str) -> None:
        self._write(
            "no rows",
            data,
            lambda o: getattr(self.table, verb)(self._rows([]), options=o),
            lambda m, t: None,
        )

    @precondition(lambda self: self.shape.index == "global")
    @rule(data=st.data(), number=st.sampled_from((0, 7, -1)))
    def move(self, data: st.DataObject, number: int) -> None:
        rows = [
            {**stored.values, "p": "oslo"}
            for stored in self.model.live().values()
            if stored.values["n"] == number
        ]
        self._write(
            "move",
            data,
            lambda o: self.table.update({"p": "'oslo'"}, where=f"n = {number}", options=o),
            lambda m, t: m.upsert(rows, t),
        )

    @precondition(lambda self: self.past and not self.broken)
    @rule(data=st.data())
    def upsert_at_a_given_instant(self, data: st.DataObject) -> None:
        rows = data.draw(rows_of(self.kind), label="rows")
        known = self.table.timeline.instants
        instant = str(max(int(i.completed or i.requested) for i in known) + 1)
        if instant.endswith("60000"):  # no such second
            return
        self._write(
            "given instant",
            data,
            lambda o: self.table.upsert(self._rows(rows), options=o, instant=instant),
            lambda m, t: m.upsert(rows, t),
        )

    @precondition(lambda self: self.spark is None)
    @rule(data=st.data(), start=st.integers(0, 70), one=st.booleans(), done=st.booleans())
    def upsert_on_failing_storage(
        self, data: st.DataObject, start: int, one: bool, done: bool
    ) -> None:
        rows = data.draw(rows_of(self.kind), label="rows")
        outage = Outage(open_storage(self.table.path), length=1 if one else None, done=done)
        table = Table(outage)
        outage.start = start
        try:
            self._write(
                "on failing storage",
                data,
                lambda o: table.upsert(self._rows(rows), options=o),
                lambda m, t: m.upsert(rows, t),
            )
        finally:
            outage.over = True
        # A write that had nothing to write is taken back, which may be what failed.
        self.broken = self.broken or outage.made > outage.start

    @precondition(lambda self: self.shape.rules)
    @rule(data=st.data())
    def set_rules(self, data: st.DataObject) -> None:
        """Rules that are set later: partitions that are there keep their number."""
        others = [rules for rules in RULES if rules != self.kind.rules]
        rules = data.draw(st.sampled_from(others), label="rules")
        state = open_state(open_storage(self.table.path))
        told = set_rules(state, rules_of(replace(self.kind, rules=rules)), {})
        assert told.changed
        DONE["rules set"] += 1
        self.broken = False
        self.past.append((self.table.timeline.instant(told.instant), self.model.rows()))
        self.kind = replace(self.kind, rules=rules)
        self.model.kind = self.kind
        self.check_head()

    # ------------------------------------------------------------------------------ plumbing

    def _partition(self) -> tuple[str, ...]:
        return ("p",) if self.kind.partitioned else ()

    def _rows(self, rows: Sequence[Values]) -> Any:
        schema = self.kind.schema
        if self.evolved:
            schema = schema.set(schema.get_field_index("w"), pa.field("w", pa.int64()))
            schema = schema.append(pa.field("e", pa.string()))
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
        return table if self.spark is None else self.spark.createDataFrame(table)

    def _once(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows that do not meet each other, and none that deletes."""
        for row in rows:
            if row.get(DELETED):
                row[DELETED] = False
        return list(self.model.combined(rows).values())

    def _fresh(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those whose keys are not there: inserts do not look, as in Hudi."""
        return [row for row in self._once(rows) if not self._is_there(row)]

    def _is_there(self, row: Values) -> bool:
        if self.kind.index == "global":
            return self.kind.record_key(row) in {key for _, key in self.model.live()}
        return self.kind.slot(row) in self.model.live()

    def _is_elsewhere(self, row: Values) -> bool:
        """Whether a global key is in another partition; overwriting does not look there."""
        here, key = self.kind.slot(row)
        others = {p for p, stored in self.model.live() if stored == key} - {here}
        return self.kind.index == "global" and bool(others)

    def _found(self, slots: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        if self.kind.index != "global":
            return list(slots)
        keys = {key for _, key in slots}
        return [slot for slot in self.model.live() if slot[1] in keys]

    def _write(
        self,
        verb: str,
        data: st.DataObject,
        act: Callable[[Mapping[str, str]], WriteResult],
        expect: Callable[[ModelTable, str], None],
    ) -> None:
        self._commit(verb, data.draw(st.sampled_from(OPTIONS), label="options"), act, expect)

    def _commit(
        self,
        verb: str,
        options: Mapping[str, str],
        act: Callable[[Mapping[str, str]], WriteResult],
        expect: Callable[[ModelTable, str], None],
    ) -> None:
        groups = buckets_with_files(self.table) if self.kind.index == "bucket" else set()
        self.model.groups = lambda: groups
        before, live = counted(self.model.rows(), self.columns), self.model.live()
        self.sound = False
        result = self._tried(act, options)
        DONE["writes"] += 1
        DONE[verb] += 1
        if result is None:
            self._found_out(expect)
        else:
            instant = result.instant
            expect(self.model, instant.requested if instant else "nothing written")
            if instant is None:
                assert counted(self.model.rows(), self.columns) == before, "a write was left out"
            else:
                self.broken = False
                self.past.append((instant, self.model.rows()))
                if result.exact and not result.operation.replaces and self.kind.index != "global":
                    self.check_counts(result, live)
        self.check_head()
        self.sound = True

    def _tried(
        self, act: Callable[[Mapping[str, str]], WriteResult], options: Mapping[str, str]
    ) -> WriteResult | None:
        """The result; None where the storage failed and the caller was told so."""
        self.unknown = False
        try:
            return act(options)
        except CommitStateUnknown:
            self.unknown = True
        except Unavailable:
            pass
        DONE["failed writes"] += 1
        self.broken = True
        return None

    def _found_out(self, expect: Callable[[ModelTable, str], None]) -> None:
        """A failed write did nothing, unless the caller was told that nobody knows."""
        news = self._news()
        assert len(news) <= self.unknown, f"told to have failed, but done: {news}"
        for instant in news:
            expect(self.model, instant.requested)
            self.past.append((instant, self.model.rows()))

    def _news(self) -> list[Any]:
        """The writes on the timeline that the model does not know of."""
        known = {instant.requested for instant, _ in self.past}
        return [i for i in self.table.timeline.data() if i.requested not in known]

    def check_counts(self, result: WriteResult, before: Mapping[Any, Stored]) -> None:
        """The numbers that the caller is told are those of the model."""
        assert result.instant is not None
        now = self.model.live()
        touched = {s for s, stored in now.items() if stored.instant == result.instant.requested}
        expected = {
            "inserted": len(touched - before.keys()),
            "updated": len(touched & before.keys()),
            "deleted": len(before.keys() - now.keys()),
        }
        told = {name: getattr(result, name) for name in expected}
        assert told == expected

    @property
    def hudi_reads(self) -> bool:
        """The hudi package refuses logs whose column is narrower than the table's by now."""
        return not (self.kind.mor and self.evolved)

    def check_head(self) -> None:
        expected = counted(self.model.rows(), self.columns)
        rows = self.head = by_us(self.table.scan(meta=True))
        same(counted(rows, self.columns), expected, "we read the head")
        numbers = Counter(row["_hoodie_commit_seqno"] for row in rows)
        assert not [number for number, count in numbers.items() if count > 1]
        if self.kind.rules:
            self.check_buckets(rows)
        if self.past and self.hudi_reads:
            there = counted(by_hudi(self.table.path), self.columns)
            same(there, expected, "hudi reads the head")

    def check_buckets(self, rows: Sequence[Values]) -> None:
        """Every row lies in its bucket, of as many as its partition had from the beginning."""
        layout = layout_of(open_state(open_storage(self.table.path)), {})
        assert layout.buckets is not None
        groups = buckets_with_files(self.table)
        for partition in {path for path, _ in groups}:
            number = self.model.numbers.setdefault(partition, self.kind.number(partition))
            assert layout.buckets.number_of(partition) == number
            assert all(bucket < number for path, bucket in groups if path == partition)
        for row in rows:
            slot = (row["_hoodie_partition_path"], row["_hoodie_record_key"])
            assert self.model.group(slot)[1] == int(row["_hoodie_file_name"][:8])
        DONE["rows in their buckets"] += len(rows)

    def teardown(self) -> None:
        try:
            if self.past and self.sound:
                if self.broken:
                    self._mend()
                check_past(self.table, self.past, self.columns, hudi_reads=self.hudi_reads)
                DONE["histories"] += 1
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _mend(self) -> None:
        """Write once more, which takes away what failed writes left."""
        rows = self.first
        self._commit(
            "upsert",
            {},
            lambda o: self.table.upsert(self._rows(rows), options=o),
            lambda m, t: m.upsert(rows, t),
        )


def check_past(
    table: lw.Table,
    past: Sequence[tuple[Any, list[dict[str, Any]]]],
    columns: Sequence[str],
    *,
    hudi_reads: bool = True,
) -> None:
    """Compare every instant and every window between neighbours, and check the format."""
    report = table.fsck(deep=True)
    assert report.ok, report.problems
    strange = [note for note in report.notes if note.code in {"orphan-file", "pending"}]
    assert not strange, strange
    for instant, rows in past:
        expected = counted(rows, columns)
        seen = by_us(table.scan(meta=True, as_of=instant.requested))
        same(counted(seen, columns), expected, f"we read as of {instant}")
        if hudi_reads:
            there = by_hudi(table.path, hudi_as_of(instant.requested))
            same(counted(there, columns), expected, f"hudi reads as of {instant}")
    ends = [None, *(instant.completed for instant, _ in past)]
    for (start, end), (instant, rows) in zip(itertools.pairwise(ends), past, strict=True):
        news = [row for row in rows if row["_hoodie_commit_time"] == instant.requested]
        expected = counted(news, columns)
        here = counted(by_us(table.incremental(start, end, meta=True)), columns)
        if hudi_reads:
            found = counted(by_hudi(table.path, hudi_window(start, end)), columns)
            same(here, found, f"we and hudi read the window of {instant}")
        # A late record in a log counts as news, although it loses to a base file before the window.
        late = table.definition.table_type == "MERGE_ON_READ" and table.definition.ordering
        same(here & expected if late else here, expected, f"we read the window of {instant}")
    times = [i.requested for i in table.timeline.data()]
    assert times == sorted(set(times)) == [instant.requested for instant, _ in past]


def machine_of(shape: Kind, spark: Any = None) -> type[WriteMachine]:
    """A machine class for one shape of table; with a session it writes Spark's DataFrames."""
    name = f"Machine_{shape}".replace("-", "_")
    return type(name, (WriteMachine,), {"shape": shape, "spark": spark})
