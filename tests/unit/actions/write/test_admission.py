"""Which tables are written here, and what is known of their buckets."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.tasks.write_spec import TAKEN_NAMES
from lakewright.actions.write.admission import admit
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.hashing_config import (
    CONFIGS_FOLDER,
    FIRST_INSTANT,
    HashingConfig,
    encode_hashing_config,
)
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import RULE_TYPE, IndexKind, IndexLayout
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import parse_rules, rules_json
from lakewright.model.errors import Corrupt, Invalid, InvalidOption, Unsupported
from lakewright.storage.memory import MemoryStorage
from lakewright.table.state import open_state
from support.tiny_tables import TinyTable, base_name, parquet_bytes

TYPE = "hoodie.index.type"
COUNT = "hoodie.bucket.index.num.buckets"
HASH = "hoodie.bucket.index.hash.field"
BUCKET = {TYPE: "BUCKET", COUNT: "4"}


def admitted(tiny: TinyTable, options: dict[str, str] | None = None) -> IndexLayout:
    return admit(open_state(tiny.storage), options or {})


def with_file(group: str, **properties: str) -> TinyTable:
    tiny = TinyTable(**properties)
    name = base_name(group, 1)
    return tiny.commit(1, {"dt=1": {name: parquet_bytes(["a"], [1])}}, completed=2)


@pytest.mark.parametrize("version", [6, 9])
def test_a_plain_table(version: int) -> None:
    layout = admitted(TinyTable(version))
    assert layout == IndexLayout(IndexKind.SIMPLE, stored=False)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"hoodie.table.metadata.partitions": "files"}, "lakewright table disable-metadata"),
        ({"hoodie.table.metadata.partitions.inflight": "files"}, "disable-metadata"),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "merges records in its own way"),
        ({"hoodie.table.partial.update.mode": "IGNORE_MARKERS"}, "by column"),
        ({"hoodie.table.base.file.format": "ORC"}, "ORC"),
        ({"hoodie.table.multiple.base.file.formats.enable": "true"}, "parquet"),
        ({"hoodie.bootstrap.base.path": "/x"}, "bootstrapped"),
        ({"hoodie.populate.meta.fields": "false"}, "virtual keys"),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "partition columns"),
        ({"hoodie.table.keygenerator.class": "com.example.MyKeyGenerator"}, "generator"),
        ({**BUCKET, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "fixed number"),
        ({TYPE: "BUCKET"}, COUNT),
    ],
)
def test_what_is_refused(properties: dict[str, str], words: str) -> None:
    tiny = TinyTable(**{key.replace(".", "__"): value for key, value in properties.items()})
    with pytest.raises(Unsupported, match=words.replace(".", r"\.")):
        admitted(tiny)


def test_partial_updates_by_null_are_written() -> None:
    admitted(TinyTable(hoodie__table__partial__update__mode="IGNORE_DEFAULTS"))


def test_partitions_by_plain_times_are_refused() -> None:
    schema = (
        '{"type":"record","name":"t","fields":[{"name":"id","type":"string"},{"name":"at",'
        '"type":{"type":"long","logicalType":"timestamp-micros"}}]}'
    )
    with pytest.raises(Unsupported, match="'at'"):
        admitted(TinyTable(partition_by="at").commit(1, {}, completed=2, schema=schema))
    for unit in ("EPOCHMICROSECONDS", "EPOCHMILLISECONDS"):
        formatted = TinyTable(
            partition_by="at:TIMESTAMP",
            hoodie__table__keygenerator__type="CUSTOM",
            hoodie__keygen__timebased__timestamp__type=unit,
        ).commit(1, {}, completed=2, schema=schema)
        if unit == "EPOCHMICROSECONDS":
            admitted(formatted)
            continue
        with pytest.raises(Unsupported, match="EPOCHMICROSECONDS"):
            admitted(formatted)


def test_a_custom_generator_of_version_6_does_not_say_what_is_a_time() -> None:
    """What Hudi formats would be written unformatted, to another folder: keys twice."""
    custom = "org.apache.hudi.keygen.CustomKeyGenerator"
    option = "hoodie.datasource.write.partitionpath.field"
    table = TinyTable(6, partition_by="p,q", hoodie__table__keygenerator__class=custom)
    for kinds in (None, "p,q", "p:SIMPLE,q:TIMESTAMP"):
        with pytest.raises(Unsupported, match=f"{option}=p:SIMPLE,q:SIMPLE"):
            admitted(table, {} if kinds is None else {option: kinds})
    admitted(table, {option: "p:simple, q:SIMPLE"})
    marked = "p:SIMPLE,q:SIMPLE"
    admitted(TinyTable(6, partition_by=marked, hoodie__table__keygenerator__class=custom))


def test_version_8_has_a_way_out() -> None:
    with pytest.raises(Unsupported, match="upgrade_table"):
        admitted(TinyTable(8))


def test_one_key_of_the_complex_generator_is_ambiguous_in_version_6() -> None:
    complex_class = "org.apache.hudi.keygen.ComplexKeyGenerator"
    setting = "hoodie.write.complex.keygen.new.encoding"
    with pytest.raises(Unsupported, match=setting.replace(".", r"\.")):
        admitted(TinyTable(6, hoodie__table__keygenerator__class=complex_class))
    more = {setting.replace(".", "__"): "false"}
    admitted(TinyTable(6, hoodie__table__keygenerator__class=complex_class, **more))
    admitted(TinyTable(9, hoodie__table__keygenerator__type="COMPLEX"))


class _Weak(MemoryStorage):
    @property
    def can_create_atomically(self) -> bool:
        return False


def test_a_weak_store_needs_a_lock() -> None:
    tiny = TinyTable(storage=_Weak("memory://weak-admission/t", {}))
    with pytest.raises(Unsupported, match=r"hoodie\.write\.lock\.provider"):
        admitted(tiny)
    admitted(tiny, {"hoodie.write.lock.provider": "some.Provider"})


def test_the_table_says_what_its_buckets_are() -> None:
    tiny = TinyTable(**{key.replace(".", "__"): value for key, value in BUCKET.items()})
    assert admitted(tiny) == IndexLayout(IndexKind.BUCKET, BucketCounts.plain(4))
    assert admitted(tiny, BUCKET) == IndexLayout(IndexKind.BUCKET, BucketCounts.plain(4))


@pytest.mark.parametrize("options", [{COUNT: "8"}, {TYPE: "BLOOM"}, {HASH: "dt"}, {HASH: "n"}])
def test_options_that_contradict_the_table(options: dict[str, str]) -> None:
    tiny = TinyTable(**{key.replace(".", "__"): value for key, value in BUCKET.items()})
    with pytest.raises(Invalid):
        admitted(tiny, options)


def test_a_bucket_table_of_another_writer_is_known_by_its_file_ids() -> None:
    tiny = with_file("00000003-aaaa")
    with pytest.raises(Unsupported, match=COUNT.replace(".", r"\.")):
        admitted(tiny)
    with pytest.raises(Unsupported, match="does not say how many"):
        admitted(tiny, {TYPE: "BUCKET"})
    with pytest.raises(Unsupported, match="SIMPLE was given"):
        admitted(tiny, {TYPE: "SIMPLE"})
    assert admitted(tiny, BUCKET) == IndexLayout(
        IndexKind.BUCKET, BucketCounts.plain(4), stored=False
    )


def test_a_lookup_table_does_not_become_a_bucket_table() -> None:
    tiny = with_file("a0000003-aaaa")
    with pytest.raises(Unsupported, match="not those of buckets"):
        admitted(tiny, BUCKET)
    assert admitted(tiny, {TYPE: "GLOBAL_BLOOM"}).kind is IndexKind.GLOBAL_BLOOM


def test_a_random_id_of_digits_is_no_bucket() -> None:
    assert admitted(with_file("12345678-aaaa")).kind is IndexKind.SIMPLE


def test_a_number_of_buckets_is_compared_with_stored_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = int(bucket_of(pa.array(["a"]), ["id"], 4)[0])
    tiny = with_file(f"{right:08d}-aaaa")

    class Footer:
        key_range = ("a", "a")

    monkeypatch.setattr("lakewright.actions.write.bucket_admission.read_footer", lambda *_: Footer)
    assert admitted(tiny, BUCKET).buckets == BucketCounts.plain(4)
    wrong = next(n for n in range(5, 99) if int(bucket_of(pa.array(["a"]), ["id"], n)[0]) != right)
    with pytest.raises(Invalid, match="belongs to bucket"):
        admitted(tiny, {**BUCKET, COUNT: str(wrong)})


EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
RULES = parse_rules("^dt=2,8;^dt=3,2", 4)
NO_INDEX = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}


def with_rules(rules: BucketRules = RULES, group: str | None = None, **more: str) -> TinyTable:
    tiny = TinyTable(**more) if group is None else with_file(group, **more)
    HashingStore(tiny.storage).write_config(FIRST_INSTANT, rules, {})
    return tiny


@pytest.mark.parametrize("stored", [True, False])
def test_a_table_with_rules_needs_no_number(stored: bool) -> None:
    layout = admitted(with_rules(**({"hoodie__index__type": "BUCKET"} if stored else {})))
    assert layout == IndexLayout(
        IndexKind.BUCKET, BucketCounts(RULES, {}, FIRST_INSTANT), stored=stored
    )
    assert layout.buckets is not None
    assert layout.buckets.numbers_of(["dt=1", "dt=2", "dt=3"]) == [4, 8, 2]


def test_rules_of_another_writer_are_known_whatever_the_properties_say() -> None:
    tiny = with_rules(group="00000003-aaaa")
    assert admitted(tiny).buckets == BucketCounts(RULES, {}, FIRST_INSTANT)
    with pytest.raises(Invalid, match="SIMPLE was given"):
        admitted(tiny, {TYPE: "SIMPLE"})


@pytest.mark.parametrize(
    "options",
    [
        {COUNT: "4"},
        {TYPE: "BUCKET"},
        {EXPRESSIONS: "^dt=2,8;^dt=3,2"},
        {EXPRESSIONS: "^dt=2,8;^dt=3,2", COUNT: "4", RULE_TYPE.key: "regex"},
        {EXPRESSIONS: rules_json(RULES)},
    ],
)
def test_options_that_repeat_the_rules_are_no_wish(options: dict[str, str]) -> None:
    assert admitted(with_rules(), options).buckets == BucketCounts(RULES, {}, FIRST_INSTANT)


@pytest.mark.parametrize(
    "options",
    [
        {COUNT: "8"},
        {EXPRESSIONS: "^dt=2,8"},
        {EXPRESSIONS: "^dt=3,2;^dt=2,8"},
        {EXPRESSIONS: "^dt=2,8;^dt=3,2", COUNT: "5"},
        {EXPRESSIONS: rules_json(replace(RULES, default=5))},
        {EXPRESSIONS: "{"},
        {EXPRESSIONS: "^dt=2,8;^dt=3,2", RULE_TYPE.key: "range"},
        {HASH: "dt"},
    ],
)
def test_options_that_contradict_the_rules(options: dict[str, str]) -> None:
    with pytest.raises((Invalid, InvalidOption)):
        admitted(with_rules(), options)


def test_rules_of_other_software_that_are_not_understood_stop_a_write() -> None:
    tiny = TinyTable()
    odd = HashingConfig(r"(a)\1,3", 4, FIRST_INSTANT)
    tiny.storage.write(
        f"{CONFIGS_FOLDER}/{FIRST_INSTANT}.hashing_config", encode_hashing_config(odd)
    )
    with pytest.raises(Invalid, match=r"\(a\)"):
        admitted(tiny)


def test_an_upgraded_table_may_be_given_its_first_number() -> None:
    tiny = with_rules(**{key.replace(".", "__"): v for key, v in {**BUCKET, COUNT: "9"}.items()})
    assert admitted(tiny, {COUNT: "9"}).buckets == BucketCounts(RULES, {}, FIRST_INSTANT)
    with pytest.raises(Invalid, match="where its rules say nothing else, but 8 was given"):
        admitted(tiny, {COUNT: "8"})


def test_a_write_does_not_give_rules_to_a_table() -> None:
    tiny = TinyTable(**{key.replace(".", "__"): value for key, value in BUCKET.items()})
    with pytest.raises(Invalid, match=r"buckets\.set\(rules\)"):
        admitted(tiny, {EXPRESSIONS: "^dt=2,8"})


def test_consistent_hashing_is_refused_beside_rules() -> None:
    with pytest.raises(Unsupported, match="fixed number"):
        admitted(with_rules(), NO_INDEX)


def test_hash_fields_that_are_not_stored_are_compared_with_stored_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = int(bucket_of(pa.array(["a"]), ["id"], 4)[0])

    class Footer:
        key_range = ("a", "a")

    monkeypatch.setattr("lakewright.actions.write.bucket_admission.read_footer", lambda *_: Footer)
    assert not admitted(with_rules(group=f"{right:08d}-aaaa")).stored
    with pytest.raises(Invalid, match=r"with 4 buckets .* belongs to bucket"):
        admitted(with_rules(group=f"{(right + 1) % 4:08d}-aaaa"))


def test_a_config_that_cannot_be_read_stops_a_write() -> None:
    tiny = TinyTable(**{key.replace(".", "__"): value for key, value in BUCKET.items()})
    tiny.storage.write(f"{CONFIGS_FOLDER}/{FIRST_INSTANT}.hashing_config", b"{}")
    with pytest.raises(Corrupt, match="hashing_config"):
        admitted(tiny)


def test_unknown_kinds_are_listed() -> None:
    with pytest.raises(InvalidOption, match="GLOBAL_SIMPLE"):
        admitted(TinyTable(), {TYPE: "RECORD_INDEX"})


#: Names that only readers put beside the columns of a table; they read tables with such columns
#: in another way.
READING = {
    "_lakewright_at",
    "_lakewright_bits",
    "_lakewright_count",
    "_lakewright_file",
    "_lakewright_row",
}


def test_columns_cannot_have_the_names_of_what_travels_beside_them(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.string()), ("_Lakewright_Delete", pa.bool_())])
    with pytest.raises(Unsupported, match="_Lakewright_Delete for itself"):
        lw.create_table(tmp_path / "t", schema=columns, key="id")
    table = lw.create_table(tmp_path / "t", schema=columns.remove(1), key="id")
    with pytest.raises(Unsupported, match="_lakewright_key for itself"):
        table.upsert([{"id": "a", "_lakewright_key": 1}])


def test_every_name_that_travels_is_known() -> None:
    package = Path(lw.__file__).parent
    named = re.compile(r'"(_lakewright_[a-z]+)"')
    found = {name for path in package.rglob("*.py") for name in named.findall(path.read_text())}
    assert found == TAKEN_NAMES | READING
