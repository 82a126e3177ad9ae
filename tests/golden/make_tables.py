"""Make small Hudi tables with real Hudi on Spark, and record the rows that Hudi returns.

    ./dev interop-python tests/golden/make_tables.py --jar PATH/hudi-spark3.5-bundle_2.12-1.2.0.jar

Each recipe writes one table; it is zipped to ``tests/golden/tables/<name>.zip`` and described in
``tests/golden/tables/<name>.json``: the rows at the head, read-optimised, as of every completed
write, incremental windows and change streams. Nothing in those files is computed by hand.

Values in the JSON: times and dates are ISO text (UTC), decimals text, binary ``hex:…``, maps
sorted lists of pairs; rows are sorted by their JSON text. Of Hudi's own columns the commit time,
the key and the partition path are kept.
"""

import argparse
import datetime as dt
import decimal
import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "tables"
WRITES = ("commit", "deltacommit", "replacecommit")
UNSTABLE = ("_hoodie_commit_seqno", "_hoodie_file_name")
QUIET = {
    "hoodie.metadata.enable": "false",
    "hoodie.index.bloom.num_entries": "64",
    "hoodie.bloom.index.filter.dynamic.max.entries": "256",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.compact.inline.max.delta.commits": "50",
}
SHOP = "id string, city string, item string, n int, total double, at long"
CITIES = ("oslo", "lima")


def order(i: int, rev: int = 0, at: int | None = None, **other: Any) -> dict[str, Any]:
    """One row of the shop table: the same number and revision give the same row."""
    row = {
        "id": f"o{i:02d}",
        "city": CITIES[i % 2],
        "item": ["cup", "tëa", "", "p,l=a/te"][(i + rev) % 4],
        "n": (i * 7 + rev * 3) % 11 - 3,
        "total": (i * 13 + rev) / 4,
        "at": 1_000 + rev if at is None else at,
    }
    return {**row, **other}


class Maker:
    """One table being made: writes through Spark, procedures, and what Hudi reads back."""

    def __init__(self, spark: Any, name: str, root: Path, **settings: str) -> None:
        self.spark, self.name, self.path = spark, name, root / name
        self.schema = SHOP
        self.settings = {
            **QUIET,
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "at",
            "hoodie.datasource.write.hive_style_partitioning": "true",
        }
        self.set(**settings)
        self.windows: list[tuple[int, int | None]] = []
        self.changes = False
        self.known = False

    def set(self, **settings: str) -> None:
        """Change settings; ``__`` in a name stands for a dot, the leading ``hoodie.`` is implied."""
        for key, value in settings.items():
            full = f"hoodie.{key.replace('__', '.')}"
            if value == "":
                self.settings.pop(full, None)
            else:
                self.settings[full] = value

    def put(self, rows: list[dict[str, Any]], operation: str = "upsert", **extra: str) -> None:
        from pyspark.sql.types import _parse_datatype_string

        kind = _parse_datatype_string(self.schema)
        values = [tuple(row.get(f.name) for f in kind.fields) for row in rows]
        frame = self.spark.createDataFrame(values, kind).coalesce(1)
        options = {f"hoodie.{k.replace('__', '.')}": v for k, v in extra.items()}
        writer = frame.write.format("hudi").options(**{**self.settings, **options})
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(
            str(self.path)
        )

    def sql(self, text: str) -> None:
        """Run SQL; ``{t}`` is the table, created over the path when it is first named."""
        if text.startswith("CREATE"):  # the statement says key and ordering itself
            fields = ("recordkey", "partitionpath", "precombine")
            self.set(**{f"datasource__write__{name}__field": "" for name in fields})
        elif not self.known:
            self.spark.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.path}'")
        self.known = True
        for key, value in self.settings.items():
            self.spark.conf.set(key, value)
        try:
            self.spark.sql(text.format(t=self.name, path=self.path))
        finally:
            for key in self.settings:
                self.spark.conf.unset(key)

    def call(self, procedure: str, **arguments: str) -> None:
        given = "".join(f", {k} => '{v}'" for k, v in arguments.items())
        self.sql(f"CALL {procedure}(table => '{{t}}'{given})")

    # What Hudi returns

    def read(self, **options: str) -> Any:
        given = {f"hoodie.{k.replace('__', '.')}": v for k, v in options.items() if k != "as_of"}
        if "as_of" in options:
            given["as.of.instant"] = options["as_of"]
        given["hoodie.metadata.enable"] = self.settings["hoodie.metadata.enable"]
        if "hoodie.schema.on.read.enable" in self.settings:
            given["hoodie.schema.on.read.enable"] = "true"
        try:
            return rows_of(self.spark.read.format("hudi").options(**given).load(str(self.path)))
        except Exception as error:  # noqa: BLE001 - what Hudi answers is recorded, errors too
            lines = [line for line in str(error).splitlines() if "Exception" in line]
            return "error: " + (lines or [str(error)])[0][:200]

    def instants(self) -> list[dict[str, Any]]:
        timeline = self.path / ".hoodie" / "timeline"
        folder = timeline if timeline.is_dir() else self.path / ".hoodie"
        found = []
        for file in sorted(folder.iterdir()):
            stem, _, action = file.name.partition(".")
            begin, _, end = stem.partition("_")
            if action in WRITES and begin.isdigit():
                found.append({"requested": begin, "completed": end or begin, "action": action})
        return found

    def describe(self, release: str) -> dict[str, Any]:
        writes = self.instants()
        for write in writes:
            write["rows_as_of"] = self.read(as_of=write["requested"])
        described: dict[str, Any] = {
            "hudi_version": release,
            "history": writes,
            "snapshot": self.read(),
            "incremental": [self.window(writes, a, b) for a, b in self.windows],
        }
        if "MERGE_ON_READ" in (self.path / ".hoodie/hoodie.properties").read_text():
            described["read_optimized"] = self.read(datasource__query__type="read_optimized")
        if self.changes:
            described["cdc"] = self.window(writes, -1, None, changes=True)
        return described

    def window(
        self, writes: list[dict[str, Any]], after: int, upto: int | None, changes: bool = False
    ) -> dict[str, Any]:
        begin = "000" if after < 0 else writes[after]["completed"]
        end = writes[-1 if upto is None else upto]["completed"]
        options = {
            "datasource__query__type": "incremental",
            "datasource__read__begin__instanttime": begin,
            "datasource__read__end__instanttime": end,
        }
        if changes:
            options["datasource__query__incremental__format"] = "cdc"
        rows = self.read(**options)
        if changes and isinstance(rows, list):
            for row in rows:
                for side in ("before", "after"):
                    image = json.loads(row[side]) if row[side] else None
                    row[side] = image and {k: v for k, v in image.items() if k[:8] != "_hoodie_"}
            rows.sort(key=as_text)
        return {"after": begin, "upto": end, "rows": rows}


def as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Collect a frame in the JSON form of this module's text."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    def form(value: Any, kind: Any) -> Any:
        match kind, value:
            case _, None:
                return None
            case StructType(), _:
                return {f.name: form(value[f.name], f.dataType) for f in kind.fields}
            case ArrayType(), _:
                return [form(v, kind.elementType) for v in value]
            case MapType(), _:
                pairs = [[form(k, kind.keyType), form(v, kind.valueType)] for k, v in value.items()]
                return sorted(pairs, key=lambda pair: as_text(pair[0]))
            case _, dt.datetime():
                moment = value.astimezone(dt.UTC) if value.tzinfo else value
                return moment.replace(tzinfo=None).isoformat(timespec="microseconds")
            case _, dt.date():
                return value.isoformat()
            case _, decimal.Decimal():
                return str(value)
            case _, bytes() | bytearray():
                return "hex:" + bytes(value).hex()
            case _, float() if not math.isfinite(value):
                return str(value)
        return value

    fields = [f for f in frame.schema.fields if f.name not in UNSTABLE]
    rows = [{f.name: form(row[f.name], f.dataType) for f in fields} for row in frame.collect()]
    return sorted(rows, key=as_text)


MOR = {"datasource__write__table__type": "MERGE_ON_READ"}
V6 = {"write__table__version": "6", "write__auto__upgrade": "false"}
V8 = {"write__table__version": "8", "write__auto__upgrade": "false"}
Recipe = Callable[..., None]
RECIPES: dict[str, tuple[Recipe, dict[str, str]]] = {}


def recipe(**variants: dict[str, str]) -> Callable[[Recipe], Recipe]:
    """Register a recipe once per named variant of its settings."""

    def register(function: Recipe) -> Recipe:
        RECIPES.update({name: (function, settings) for name, settings in variants.items()})
        return function

    return register


@recipe(orders_mor=MOR, orders_cow={}, orders_mor_v8={**MOR, **V8}, orders_mor_v6={**MOR, **V6})
def orders(t: Maker) -> None:
    """Insert, late and newer updates, new keys, a delete: the table of the guide."""
    t.put([order(i) for i in range(6)], "insert")
    t.put([order(1, 1, at=900), order(2, 1), order(6, 1)])
    t.put([order(3, 2)], "delete")
    t.put([order(0, 3), order(7, 3)])
    t.windows = [(-1, None), (0, 1), (1, None)]


@recipe(overwritten_mor=MOR, overwritten_mor_v6={**MOR, **V6})
def overwritten(t: Maker) -> None:
    """Overwritten and deleted partitions under file groups that have logs."""
    t.put([order(i) for i in range(6)])
    t.put([order(0, 1), order(1, 1)])
    t.put([order(8, 2)], "insert_overwrite")
    t.put([order(8, 3), order(3, 3)])
    t.put([], "delete_partition", datasource__write__partitions__to__delete="city=lima")
    t.put([order(5, 4), order(10, 4)])
    t.put([order(2, 5), order(3, 5)], "insert_overwrite_table")
    t.put([order(2, 6)])
    t.windows = [(-1, None), (1, 3), (3, None)]


@recipe(clustered_mor=MOR, clustered_cow_v6=V6, clustered_cow_v8=V8)
def clustered(t: Maker) -> None:
    """Clustering of slices with and without logs, then updates of the new groups."""
    t.set(clustering__plan__strategy__small__file__limit="10000000")
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1), order(4, 1)])
    t.put([order(5, 2)], clustering__inline="true", clustering__inline__max__commits="1")
    t.put([order(0, 3), order(5, 3)])
    t.windows = [(-1, None), (0, None), (2, None)]


@recipe(compacted_mor_v6={**MOR, **V6}, compacted_mor_v8={**MOR, **V8})
def compacted(t: Maker) -> None:
    """Compaction done, compaction pending, and logs on both sides of it."""
    soon = "hoodie.compact.inline.max.delta.commits=1"
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1), order(4, 1)])
    t.put([order(1, 2)], "delete")
    t.call("run_compaction", op="scheduleandexecute", options=soon)
    t.put([order(2, 3)])
    t.call("run_compaction", op="schedule", options=soon)
    t.put([order(2, 4), order(3, 4)])
    t.windows = [(-1, None), (2, None)]


MODES = ("data_before_after", "data_before", "op_key_only")


def _cdc(mode: str, **other: str) -> dict[str, str]:
    return {"table__cdc__enabled": "true", "table__cdc__supplemental__logging__mode": mode, **other}


@recipe(
    **{f"changes_cow_{m}": _cdc(m) for m in MODES},
    **{f"changes_mor_{m}": _cdc(m, **MOR) for m in MODES},
    changes_cow_v6=_cdc(MODES[0], **V6),
    changes_mor_v8=_cdc(MODES[0], **MOR, **V8),
)
def changes(t: Maker) -> None:
    """Change streams over inserts, updates, late updates, deletes and overwritten partitions."""
    t.put([order(i) for i in range(4)], "insert")
    t.put([order(0, 1), order(1, 1, at=900), order(4, 1)])
    t.put([order(2, 2)], "delete")
    t.put([order(8, 3), order(2, 3)])
    t.put([order(0, 4), order(6, 4)], "insert_overwrite")
    t.put([order(6, 5), order(1, 5)])
    t.changes = True
    t.windows = [(0, None)]


@recipe(changes_compacted_mor=_cdc(MODES[0], **MOR))
def changes_compacted(t: Maker) -> None:
    """A change stream with a compaction in the middle, and a deleted partition."""
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1), order(4, 1)])
    t.call(
        "run_compaction",
        op="scheduleandexecute",
        options="hoodie.compact.inline.max.delta.commits=1",
    )
    t.put([order(0, 2), order(1, 2)])
    t.put([order(3, 3)], "delete")
    t.put([], "delete_partition", datasource__write__partitions__to__delete="city=lima")
    t.changes = True


CREATE = (
    "CREATE TABLE {t} (id int, name string, price double, qty int, ts long) USING hudi "
    "LOCATION '{path}' TBLPROPERTIES (primaryKey = 'id', type = '%s' %s)"
)


def _merge(t: Maker, kind: str, ordering: str) -> None:
    t.sql(CREATE % (kind, ordering))
    t.sql(
        "INSERT INTO {t} SELECT 1, 'a', 10.0, 1, 100L UNION ALL SELECT 2, 'b', 20.0, 2, 100L "
        "UNION ALL SELECT 3, 'c', 30.0, 3, 100L UNION ALL SELECT 4, 'd', 40.0, 4, 100L"
    )
    t.sql(
        "MERGE INTO {t} USING (SELECT 1 AS id, 11.0 AS price, 101L AS ts UNION ALL "
        "SELECT 2, 22.0, 90L) s ON {t}.id = s.id "
        "WHEN MATCHED THEN UPDATE SET price = s.price, ts = s.ts"
    )
    t.sql(
        "MERGE INTO {t} USING (SELECT 1 AS id, 'A' AS name, 102L AS ts UNION ALL "
        "SELECT 3, 'C', 102L) s ON {t}.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts"
    )
    t.sql("UPDATE {t} SET qty = qty + 10, ts = ts + 10 WHERE id >= 3")
    t.sql("DELETE FROM {t} WHERE id = 4")
    t.sql(
        "MERGE INTO {t} USING (SELECT 3 AS id, 5 AS qty, 200L AS ts, 'x' AS name, 0.5 AS price "
        "UNION ALL SELECT 9, 9, 200L, 'n', 9.5) s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET "
        "qty = s.qty, ts = s.ts WHEN NOT MATCHED THEN INSERT *"
    )
    if kind == "cow":  # over partial log blocks Hudi's incremental reader returns garbage
        t.windows = [(0, None)]


@recipe(merged_partly_mor={}, merged_partly_mor_v8=V8)
def merged_partly(t: Maker) -> None:
    """MERGE INTO that sets some columns: log blocks that hold part of the schema."""
    _merge(t, "mor", ", preCombineField = 'ts'")


@recipe(merged_partly_commit_time_mor={})
def merged_partly_commit_time(t: Maker) -> None:
    """The same without an ordering field."""
    _merge(t, "mor", "")


@recipe(merged_cow={})
def merged(t: Maker) -> None:
    """The same statements on a copy-on-write table."""
    _merge(t, "cow", ", preCombineField = 'ts'")


def _evolve(t: Maker, kind: str) -> None:
    drop = "datasource__write__schema__allow__auto__evolution__column__drop"
    t.set(schema__on__read__enable="true", **{drop: "true"})
    t.sql(
        "CREATE TABLE {t} (id int, a int, b string, c float, st struct<x:int,y:string>, ts long) "
        f"USING hudi LOCATION '{{path}}' TBLPROPERTIES (primaryKey='id', type='{kind}', preCombineField='ts')"
    )
    t.sql(
        "INSERT INTO {t} SELECT 1, 10, 'one', cast(0.1 as float), named_struct('x', 1, 'y', 'p'), 100L "
        "UNION ALL SELECT 2, 20, 'two', cast(2.5 as float), named_struct('x', 2, 'y', 'q'), 100L"
    )
    t.sql("ALTER TABLE {t} RENAME COLUMN b TO bb")
    t.sql("ALTER TABLE {t} ALTER COLUMN a TYPE bigint")
    t.sql("ALTER TABLE {t} ADD COLUMNS (d string AFTER a)")
    t.sql(
        "INSERT INTO {t} SELECT 2, 200L, 'dd', 'TWO', cast(0.3 as float), named_struct('x', 5, 'y', 'r'), 101L "
        "UNION ALL SELECT 3, 300L, 'd3', 'three', null, null, 101L"
    )
    t.sql("ALTER TABLE {t} RENAME COLUMN st.x TO xx")
    t.sql("ALTER TABLE {t} ALTER COLUMN c TYPE double")
    t.sql("ALTER TABLE {t} DROP COLUMN d")
    t.sql("UPDATE {t} SET bb = 'uno', ts = 102 WHERE id = 1")


@recipe(renamed_cow={}, renamed_cow_v6=V6)
def renamed_cow(t: Maker) -> None:
    """Renamed, widened, added and dropped columns that the table keeps track of."""
    _evolve(t, "cow")


@recipe(renamed_mor={}, renamed_mor_v8=V8)
def renamed_mor(t: Maker) -> None:
    """The same on merge-on-read."""
    _evolve(t, "mor")


TYPED = {
    "day": ("date", [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None]),
    "num": ("int", [-5, 0, None]),
    "big": ("bigint", [1 << 40, -1, 7]),
    "yes": ("boolean", [True, False, None]),
    "dec": ("decimal(10,3)", [decimal.Decimal("12.500"), decimal.Decimal("-0.001"), None]),
    "dbl": ("double", [1e10, 0.1, 1.5e-7]),
    "when": (
        "timestamp",
        [dt.datetime(2024, 2, 29, 13, 14, 15, 123456), dt.datetime(1970, 1, 1), None],
    ),
}


@recipe(
    **{
        f"partitioned_by_{name}": {"datasource__write__partitionpath__field": name}
        for name in TYPED
    },
    **{
        f"partitioned_plain_{name}": {
            "datasource__write__partitionpath__field": name,
            "datasource__write__hive_style_partitioning": "false",
        }
        for name in ("day", "num", "dec")
    },
)
def partitioned(t: Maker) -> None:
    """Partition columns of every simple type, nulls among them."""
    name = t.settings["hoodie.datasource.write.partitionpath.field"]
    kind, values = TYPED[name]
    t.schema = f"{SHOP}, {name} {kind}"
    t.put([order(i, **{name: values[i % 3]}) for i in range(6)])
    t.put([order(i, 1, **{name: values[i % 3]}) for i in (0, 2, 7)])


@recipe(partitioned_levels_plain={"datasource__write__hive_style_partitioning": "false"})
def partitioned_levels(t: Maker) -> None:
    """Two partition columns without names in the path."""
    t.set(datasource__write__partitionpath__field="city,n")
    t.put([order(i) for i in range(4)])
    t.put([order(1, 1, n=order(1)["n"])])


TIME = "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
CUSTOM = "org.apache.hudi.keygen.CustomKeyGenerator"


def _timed(kind: str, form: str, hive: str, **other: str) -> dict[str, str]:
    return {
        "datasource__write__keygenerator__class": TIME,
        "datasource__write__partitionpath__field": "moment",
        "datasource__write__hive_style_partitioning": hive,
        "keygen__timebased__timestamp__type": kind,
        "keygen__timebased__output__dateformat": form,
        "keygen__timebased__timezone": "UTC",
        **other,
    }


@recipe(
    timed_seconds_mor=_timed("UNIX_TIMESTAMP", "yyyy-MM-dd", "true", **MOR),
    timed_text=_timed(
        "DATE_STRING",
        "yyyy/MM/dd",
        "false",
        keygen__timebased__input__dateformat="yyyy-MM-dd'T'HH:mm:ss",
    ),
    timed_custom=_timed(
        "EPOCHMILLISECONDS",
        "yyyy/MM",
        "true",
        datasource__write__keygenerator__class=CUSTOM,
        datasource__write__partitionpath__field="city:SIMPLE,moment:TIMESTAMP",
    ),
)
def timed(t: Maker) -> None:
    """Partition paths made of formatted times."""
    kind = t.settings["hoodie.keygen.timebased.timestamp.type"]
    t.schema = f"{SHOP}, moment {'string' if kind == 'DATE_STRING' else 'long'}"

    def moment(i: int) -> Any:
        when = dt.datetime(2024, 1 + i % 3, 5, 6, 7, 8, tzinfo=dt.UTC)
        seconds = int(when.timestamp())
        text = when.strftime("%Y-%m-%dT%H:%M:%S")
        return {"DATE_STRING": text, "UNIX_TIMESTAMP": seconds}.get(kind, seconds * 1000)

    t.put([order(i, moment=moment(i)) for i in range(5)])
    t.put([order(i, 1, moment=moment(i)) for i in (0, 6)])


ORDERINGS = {
    "stamp": ("timestamp", lambda k: dt.datetime(2024, 1, 1, 0, 0, 0, k * 1000 + 1)),
    "word": ("string", lambda k: "bdfh"[k]),
    "dec": ("decimal(10,2)", lambda k: decimal.Decimal(k * 100 + 50).scaleb(-2)),
    "dbl": ("double", lambda k: k / 2 - 0.5),
    "small": ("int", lambda k: k - 1),
    "flt": ("float", lambda k: k / 2 - 0.5),
    "yes": ("boolean", lambda k: k > 1),
}


@recipe(
    **{f"ordered_by_{n}": {**MOR, "datasource__write__precombine__field": n} for n in ORDERINGS},
    ordered_by_stamp_v6={**MOR, **V6, "datasource__write__precombine__field": "stamp"},
    ordered_by_two_cow={
        "datasource__write__precombine__field": "word,small",
        "table__ordering__fields": "word,small",
    },
)
def ordered(t: Maker) -> None:
    """Ordering columns of every type: late, equal and newer updates, soft and hard deletes."""
    names = t.settings["hoodie.datasource.write.precombine.field"].split(",")
    columns = ", ".join(f"{n} {ORDERINGS[n][0]}" for n in names)
    t.schema = f"{SHOP}, {columns}, _hoodie_is_deleted boolean"

    def row(i: int, rev: int, rank: int, gone: bool = False) -> dict[str, Any]:
        return order(i, rev, **{n: ORDERINGS[n][1](rank) for n in names}, _hoodie_is_deleted=gone)

    t.put([row(i, 0, 1) for i in range(8)])
    t.put([row(0, 1, 0), row(1, 1, 1), row(2, 1, 2)])
    t.put([row(3, 2, 0, gone=True), row(4, 2, 2, gone=True)])
    t.put([row(5, 3, 0), row(6, 3, 2)], "delete")
    t.put([row(4, 4, 1), row(6, 4, 0), row(2, 4, 1)])
    t.windows = [(0, None)]


PAYLOAD = "org.apache.hudi.common.model."


@recipe(
    filled_mor={
        **MOR,
        "datasource__write__payload__class": PAYLOAD + "OverwriteNonDefaultsWithLatestAvroPayload",
    },
    partial_mor={**MOR, "datasource__write__payload__class": PAYLOAD + "PartialUpdateAvroPayload"},
    partial_mor_v6={
        **MOR,
        **V6,
        "datasource__write__payload__class": PAYLOAD + "PartialUpdateAvroPayload",
    },
    latest_mor_v6={
        **MOR,
        **V6,
        "datasource__write__payload__class": PAYLOAD + "OverwriteWithLatestAvroPayload",
    },
    default_mor_v6={
        **MOR,
        **V6,
        "datasource__write__payload__class": PAYLOAD + "DefaultHoodieRecordPayload",
    },
    filled_cow={
        "datasource__write__payload__class": PAYLOAD + "OverwriteNonDefaultsWithLatestAvroPayload"
    },
)
def payloads(t: Maker) -> None:
    """Merge rules that are named by a payload class."""
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1, item=None), order(1, 1, at=900, n=None), order(2, 1, total=None, at=1000)])
    t.put([order(0, 2, n=None, total=None), order(1, 2, item=None, at=950)])
    t.put([order(3, 3)], "delete")


@recipe(
    bare_cow={"populate__meta__fields": "false"},
    bare_mor={**MOR, "populate__meta__fields": "false"},
)
def bare(t: Maker) -> None:
    """Tables whose files carry no values in Hudi's own columns."""
    t.put([order(i) for i in range(4)], "bulk_insert")
    t.put([order(0, 1), order(5, 1)])


@recipe(
    unpartitioned_mor={
        **MOR,
        "datasource__write__partitionpath__field": "",
        "datasource__write__keygenerator__class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    },
    small_files_mor={**MOR, "parquet__small__file__limit": "104857600"},
    small_files_cow={"parquet__small__file__limit": "104857600"},
    indexed_mor={
        **MOR,
        "metadata__enable": "true",
        "metadata__record__index__enable": "true",
        "index__type": "RECORD_INDEX",
    },
    blocks_parquet_v6={**MOR, **V6, "logfile__data__block__format": "parquet"},
)
def plain(t: Maker) -> None:
    """Five ordinary writes under settings that change where rows and files go."""
    t.put([order(i) for i in range(4)], "bulk_insert")
    t.put([order(4), order(5)], "insert")
    t.put([order(0, 1), order(6, 1)])
    t.put([order(4, 2), order(1, 2)], "delete")
    t.put([order(1, 3), order(0, 3, at=10)])
    t.windows = [(-1, None), (1, 3)]


@recipe(without_partition_columns={"datasource__write__drop__partition__columns": "true"})
def without_partition_columns(t: Maker) -> None:
    """Partition values that stand in the path alone."""
    t.put([order(i) for i in range(4)], "insert")
    t.put([order(0, 1), order(5, 1)])


@recipe(nested_evolved_mor=MOR, nested_evolved_cow={})
def nested_evolved(t: Maker) -> None:
    """Members added inside structs, lists of structs and map values."""
    t.schema = (
        f"{SHOP}, who struct<a:int>, lines array<struct<s:string>>, m map<string,struct<k:int>>"
    )
    t.put([order(i, who=(i,), lines=[("x",)], m={"p": (i,)}) for i in range(3)])
    t.schema = (
        f"{SHOP}, who struct<a:bigint,b:string>, lines array<struct<s:string,q:int>>, "
        "m map<string,struct<k:bigint,l:string>>, extra string"
    )
    t.put(
        [
            order(1, 1, who=(1 << 40, "b"), lines=[("y", 2)], m={"p": (1 << 40, "l")}, extra="e"),
            order(4, 1, who=None, lines=[], m={}, extra=None),
        ]
    )
    t.windows = [(0, None)]


@recipe(restored_mor=MOR)
def restored(t: Maker) -> None:
    """A savepoint in the middle of logs, and the way back to it."""
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1)])
    t.call("create_savepoint", commit_time=t.instants()[-1]["requested"])
    t.put([order(0, 2), order(5, 2)])
    t.put([order(1, 3)], "delete")
    t.call("rollback_to_savepoint", instant_time=t.instants()[1]["requested"])
    t.put([order(2, 4), order(6, 4)])


@recipe(archived_mor_v6={**MOR, **V6}, archived_mor_v8={**MOR, **V8}, archived_commits={})
def archived(t: Maker) -> None:
    """Instants in the archive; windows that begin before the active timeline."""
    t.set(
        clean__automatic="true",
        clean__commits__retained="2",
        archive__automatic="true",
        keep__min__commits="3",
        keep__max__commits="4",
        commits__archival__batch="1",
        timeline__compaction__batch__size="3",
    )
    if "mor" in t.name:
        t.set(compact__inline="true", compact__inline__max__delta__commits="3")
    for rev in range(10):
        t.put([order(rev % 4, rev), order(rev, rev)])
    # On version 6 Hudi leaves out what archived commits wrote, with no word of it.
    t.windows = [(0, None)] if "v6" in t.name else [(-1, None), (0, None)]


def session(jar: Path) -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": str(jar),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.catalogImplementation": "in-memory",
    }
    builder = SparkSession.builder.master("local[1]").appName("tables")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def files_of(folder: Path) -> Iterator[tuple[str, bytes | None]]:
    for file in sorted(folder.rglob("*")):
        name = f"{folder.name}/{file.relative_to(folder)}"
        if file.is_dir():
            yield name + "/", None
        elif file.suffix != ".crc":
            yield name, file.read_bytes()


def pack(folder: Path, target: Path) -> None:
    """Zip a table with fixed times, without Hadoop's checksum files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
        for name, data in files_of(folder):
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(info, data or b"")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jar", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--only", default="", help="comma list of names; default all")
    arguments = parser.parse_args()
    wanted = [n for n in arguments.only.split(",") if n] or list(RECIPES)
    release = arguments.jar.stem.rpartition("-")[2]
    arguments.out.mkdir(parents=True, exist_ok=True)
    spark = session(arguments.jar)
    root = Path(tempfile.mkdtemp(prefix="tables-"))
    failed = []
    for name in wanted:
        function, settings = RECIPES[name]
        maker = Maker(spark, name, root, **settings)
        try:
            function(maker)
        except Exception as error:  # noqa: BLE001 - the next table can still be made
            failed.append(f"{name}: {str(error).strip().splitlines()[:3]}")
            print("FAILED", failed[-1], flush=True)
            continue
        described = {"recipe": function.__name__, **maker.describe(release)}
        (arguments.out / f"{name}.json").write_text(
            json.dumps(described, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        )
        pack(maker.path, arguments.out / f"{name}.zip")
        count = len(described["snapshot"])
        print(
            f"{name}: {count} rows, {(arguments.out / f'{name}.zip').stat().st_size} bytes",
            flush=True,
        )
    spark.stop()
    shutil.rmtree(root)
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
