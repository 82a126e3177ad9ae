"""A million record keys that are the same on every machine: what bucket numbers are judged on.

They come from the bits of an extendable hash, so that neither a release of Python nor one of
numpy changes them.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal as Number

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.schema import to_arrow_type
from lakewright.format.hudi.bucket_hash import _value_end, bucket_of
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.model import schema as s
from lakewright.model.bucket_rules.rules import MOST_BUCKETS

Numbers = npt.NDArray[np.uint32]

#: Keys of each group; there are ten groups.
EACH = 100_000
#: So many are drawn, because some are of no use.
_MORE = 180_000
NULL, EMPTY = "__null__", "__empty__"
#: Pieces that make texts whose fields are hard to tell apart.
PIECES = (",", ":", ",a:", ",b:", "a", "b", "c", NULL, EMPTY, "", "é", "😀", " ", "a:", "1")
WIDE = "éßاไ中国日本\u2028\ufffd\uffff😀\U0001d4b3\U0010ffff\U00010000"
#: Every type that a key column may have.
TYPES: tuple[s.DataType, ...] = (
    s.STRING,
    s.INT,
    s.LONG,
    s.BOOLEAN,
    s.FLOAT,
    s.DOUBLE,
    s.DATE,
    s.BINARY,
    s.Decimal(18, 3),
    s.TIMESTAMP,
    s.Timestamp(s.Unit.MILLIS),
)


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Keys of one make, the hash fields, and the number of buckets."""

    name: str
    keys: pa.Array
    fields: tuple[str, ...]
    buckets: int

    def judged(self) -> npt.NDArray[np.int32]:
        """The bucket of each key, as computed here."""
        return bucket_of(self.keys, self.fields, self.buckets)


def drawn(seed: str, count: int) -> Numbers:
    """Numbers of 32 bits."""
    return np.frombuffer(hashlib.shake_256(seed.encode()).digest(4 * count), "<u4")


def _texts(seed: str, alphabet: Sequence[str], longest: int) -> list[str]:
    """Texts of up to ``longest`` pieces of an alphabet; the first is empty."""
    sizes = (drawn(f"{seed} sizes", _MORE) % (longest + 1)).tolist()
    sizes[0] = 0
    places = (drawn(seed, sum(sizes)) % len(alphabet)).tolist()
    at, texts = 0, []
    for size in sizes:
        texts.append("".join([alphabet[place] for place in places[at : at + size]]))
        at += size
    return texts


def hudi_ends(key: str, fields: Sequence[str]) -> bool:
    """Whether Hudi's own function returns for a key.

    It looks for the end of a value that it does not need, and where a colon follows but no comma,
    it looks forever.
    """
    if "," not in key or ":" not in key:
        return True
    at = 0
    while at < len(key):
        colon = key.find(":", at)
        end = _value_end(key, colon)
        if end == len(key):
            return not fields or key[at:colon] in fields or key.find(":", colon + 1) < 0
        at = end + 1
    return True


def _ended(texts: Sequence[str], fields: Sequence[str]) -> pa.Array:
    """The first of the texts for which Hudi has a bucket."""
    kept = [text for text in texts if hudi_ends(text, fields)][:EACH]
    assert len(kept) == EACH
    return pa.array(kept)


def _any_characters(seed: str) -> list[str]:
    """Texts of any characters that there are, those beyond the sixteen bits included."""
    codes = drawn(seed, EACH * 4) % 0x110000
    # The halves of pairs are no characters.
    codes = np.where((codes >= 0xD800) & (codes < 0xE000), codes & 0x7F, codes)
    return ["".join(map(chr, four)) for four in codes.reshape(EACH, 4).tolist()]


def _parts(seed: str) -> list[str]:
    """Values of key columns as a key states them: one in eight is absent, one in eight empty."""
    words = _texts(seed, (*"abcxyz0189-_ ,:", *WIDE), 7)
    kinds = (drawn(f"{seed} kinds", len(words)) % 8).tolist()
    return [
        NULL if kind == 0 else EMPTY if kind == 1 or not word else word
        for word, kind in zip(words, kinds, strict=True)
    ]


def _named(*names: str) -> list[str]:
    columns = [_parts(f"part {name} of {len(names)}") for name in names]
    rows = zip(*columns, strict=True)
    return [",".join(f"{n}:{v}" for n, v in zip(names, row, strict=True)) for row in rows]


def typed_columns(seed: str, count: int) -> pa.Table:
    """A column of each type in which every eighth value is null."""
    columns = {}
    for number, kind in enumerate(TYPES):
        bits = drawn(f"{seed} {number}", 2 * count).view("<i8")
        mask = drawn(f"{seed} {number} nulls", count) % 8 == 0
        columns[f"c{number}"] = _column(bits, kind, mask)
    return pa.table(columns)


def _column(bits: npt.NDArray[np.int64], kind: s.DataType, mask: npt.NDArray[np.bool_]) -> pa.Array:
    made = to_arrow_type(kind)
    if kind == s.STRING:
        return pc.if_else(mask, pa.scalar(None, pa.string()), pa.array(bits % 9973).cast(made))
    if kind == s.BINARY:
        raw = [v.to_bytes(8, "big", signed=True)[: 1 + v % 8] for v in bits.tolist()]
        return pa.array(raw, made, mask=mask)
    if kind == s.BOOLEAN:
        return pa.array(bits % 2 == 0, made, mask=mask)
    if kind in (s.FLOAT, s.DOUBLE):
        return pa.array(bits % 100_003 / 8, pa.float64(), mask=mask).cast(made)
    if kind == s.INT:
        return pa.array(bits % 2**32 - 2**31, pa.int64(), mask=mask).cast(made)
    if kind == s.DATE:
        return pa.array((bits % 60_000 - 20_000).astype(np.int32), pa.int32(), mask=mask).cast(made)
    if isinstance(kind, s.Decimal):
        whole = pa.array(bits % 10**12, pa.int64(), mask=mask).cast(pa.decimal128(19, 0))
        return pc.multiply(whole, pa.scalar(Number("0.001"), pa.decimal128(4, 3))).cast(made)
    if isinstance(kind, s.Timestamp):
        return pa.array(bits % 10**12 - 10**11, pa.int64(), mask=mask).cast(made)
    return pa.array(bits, made, mask=mask)


def typed_keys(seed: str, count: int, names: Sequence[str]) -> pa.Array:
    """The record keys of rows with these key columns."""
    kinds = {f"c{number}": kind for number, kind in enumerate(TYPES)}
    config = TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.recordkey.fields": ",".join(names),
        }
    )
    schema = s.Struct(tuple(s.Field(name, kind) for name, kind in kinds.items()))
    rows = typed_columns(seed, count)
    present = rows[names[0]].is_valid()
    for name in names[1:]:
        present = pc.or_(present, rows[name].is_valid())
    return KeyMaker.of(config, schema).keys(rows.filter(present))


def key_groups() -> Iterator[KeyGroup]:
    """The million, group after group."""
    yield _group("ascii", _texts("ascii", tuple(map(chr, range(32, 127))), 40), ("id",), 256)
    yield _group("wide", _texts("wide", (*WIDE, "a"), 12), ("id",), 97)
    yield _group("any characters", _any_characters("any"), (), MOST_BUCKETS)
    numbers = drawn("numbers", 2 * EACH).view("<i8").tolist()
    yield _group("numbers", list(map(str, numbers)), ("id",), 1)
    yield _group("two columns", _named("a", "b"), ("a", "b"), 64)
    yield _group("one of three", _named("a", "b", "c"), ("b",), 1000)
    yield _group("all of three", _named("c", "a", "b"), (), 100_000)
    yield _group("hard to part", _texts("hard", PIECES, 9), ("a", "b"), 31)
    yield _group("named otherwise", _texts("other", PIECES, 9), ("id",), 7)
    yield _typed()


def _group(name: str, texts: Sequence[str], fields: tuple[str, ...], buckets: int) -> KeyGroup:
    return KeyGroup(name, _ended(texts, fields), fields, buckets)


def _typed() -> KeyGroup:
    """Keys of every type alone, and of all of them together."""
    names = [f"c{number}" for number in range(len(TYPES))]
    share = EACH // len(TYPES)
    made = [typed_keys(f"typed {name}", share, [name]) for name in names]
    rest = EACH - sum(map(len, made))
    whole = typed_keys("typed all", rest + 10, names)[:rest]
    return KeyGroup("typed", pa.concat_arrays([*made, whole]), tuple(names), 12_345)


def digest(buckets: npt.NDArray[np.int32]) -> str:
    """What many bucket numbers are known by."""
    return hashlib.sha256(buckets.astype("<i4").tobytes()).hexdigest()[:16]
