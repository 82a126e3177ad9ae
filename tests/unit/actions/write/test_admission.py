"""Which tables are written here, and what is known of their buckets."""

import pyarrow as pa
import pytest

from lakewright.actions.write.admission import admit
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.index.layout import IndexKind, IndexLayout
from lakewright.model.errors import Invalid, InvalidOption, Unsupported
from lakewright.storage.memory import MemoryStorage
from lakewright.table.state import open_state
from support.tiny_tables import TinyTable, at, base_name, parquet_bytes

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
    formatted = TinyTable(
        partition_by="at:TIMESTAMP", hoodie__table__keygenerator__type="CUSTOM"
    ).commit(1, {}, completed=2, schema=schema)
    admitted(formatted)


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
    assert admitted(tiny) == IndexLayout(IndexKind.BUCKET, 4)
    assert admitted(tiny, BUCKET) == IndexLayout(IndexKind.BUCKET, 4)


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
    assert admitted(tiny, BUCKET) == IndexLayout(IndexKind.BUCKET, 4, stored=False)


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

    monkeypatch.setattr("lakewright.actions.write.admission.read_footer", lambda *_: Footer)
    assert admitted(tiny, BUCKET).buckets == 4
    wrong = next(n for n in range(5, 99) if int(bucket_of(pa.array(["a"]), ["id"], n)[0]) != right)
    with pytest.raises(Invalid, match="belongs to bucket"):
        admitted(tiny, {**BUCKET, COUNT: str(wrong)})


def test_partition_level_buckets_are_refused() -> None:
    tiny = TinyTable(**{key.replace(".", "__"): value for key, value in BUCKET.items()})
    folder = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
    tiny.storage.write(f"{folder}/{at(1)}.hashing_config", b"{}")
    with pytest.raises(Unsupported, match="partition-level"):
        admitted(tiny)


def test_unknown_kinds_are_listed() -> None:
    with pytest.raises(InvalidOption, match="GLOBAL_SIMPLE"):
        admitted(TinyTable(), {TYPE: "RECORD_INDEX"})
