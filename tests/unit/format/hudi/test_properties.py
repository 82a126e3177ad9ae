"""Properties: Java's escaping both ways, the checksum, and replacement that survives crashes."""

import contextlib
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.properties import (
    BACKUP_PATH,
    CHECKSUM,
    PROPERTIES_PATH,
    load_properties,
    parse_properties,
    recover_properties,
    render_properties,
    store_properties,
    table_checksum,
    update_properties,
)
from lakewright.model.errors import Conflict, Corrupt, LakewrightError, TableNotFound, Unavailable
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage

OLD = {"hoodie.table.name": "t", "hoodie.database.name": "db", "colour": "old"}
NEW = {**OLD, "colour": "new"}


def memory() -> Storage:
    return open_storage(f"memory://{uuid.uuid4()}")


@given(st.dictionaries(st.text(), st.text()), st.lists(st.text("abc é", max_size=20), max_size=2))
def test_properties_survive_their_text(values: dict[str, str], comments: list[str]) -> None:
    assert parse_properties(render_properties(values, comments)) == values


@given(st.dictionaries(st.text(), st.text()))
def test_written_text_is_ascii(values: dict[str, str]) -> None:
    assert render_properties(values).isascii()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("a  =  1 ", {"a": "1 "}),
        ("a = = 1", {"a": "= 1"}),
        ("a\\ b\\=c=1", {"a b=c": "1"}),
        ("a=1\\\n   2\\\n\t3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("  # no\n! no\n\n\t\na=#yes", {"a": "#yes"}),
        ("# a comment \\\na=1", {"a": "1"}),
        ("a=x\\\n# joined", {"a": "x# joined"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("k=\\t\\n\\r\\f\\q\\u00e9", {"k": "\t\n\r\fq\u00e9"}),
        ("k=\\uD83D\\uDE00", {"k": "\U0001f600"}),
        ("k=\\u00fcber", {"k": "über"}),
        ("a=1\na=2", {"a": "2"}),
        ("k=ends with\\", {"k": "ends with"}),
        (
            'hoodie.table.create.schema={"type"\\:"record"}',
            {"hoodie.table.create.schema": '{"type":"record"}'},
        ),
        ('s={"type":"record"}', {"s": '{"type":"record"}'}),
    ],
)
def test_java_text_is_understood(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode()) == expected


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"k": '{"a":1}'}, b'k={"a"\\:1}\n'),
        ({"k": " x y"}, b"k=\\ x y\n"),
        ({"a b": "=#!"}, b"a\\ b=\\=\\#\\!\n"),
        ({"k": "é\U0001f600\x00"}, b"k=\\u00E9\\uD83D\\uDE00\\u0000\n"),
        ({"k": "a\\b\tc"}, b"k=a\\\\b\\tc\n"),
    ],
)
def test_text_is_written_as_java_writes_it(values: dict[str, str], line: bytes) -> None:
    assert render_properties(values) == line


def test_bytes_that_are_no_utf_8_are_latin_1() -> None:
    assert parse_properties(b"k=\xe9") == {"k": "é"}


@pytest.mark.parametrize("text", ["k=\\u12", "k=\\uzzzz", "k=\\u"])
def test_a_broken_escape_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt) as caught:
        parse_properties(text.encode(), "some/file")
    assert caught.value.facts["path"] == "some/file"


def test_the_checksum_covers_both_names() -> None:
    assert table_checksum({"hoodie.table.name": "mor_basic_v6"}) == 844965264
    assert table_checksum(OLD) != table_checksum({"hoodie.table.name": "t"})


def test_stored_properties_are_loaded_with_their_checksum() -> None:
    storage = memory()
    store_properties(storage, OLD)
    assert load_properties(storage) == {**OLD, CHECKSUM: str(table_checksum(OLD))}
    assert storage.read(PROPERTIES_PATH).startswith(b"#Properties saved on 2")
    store_properties(storage, NEW)
    assert load_properties(storage)["colour"] == "new"
    assert storage.read(PROPERTIES_PATH).startswith(b"#Updated at 2")
    assert storage.stat(BACKUP_PATH) is None


def test_no_file_is_no_table() -> None:
    with pytest.raises(TableNotFound) as caught:
        load_properties(memory())
    assert ".hoodie" in str(caught.value)


def test_a_missing_checksum_is_accepted() -> None:
    storage = memory()
    storage.write(PROPERTIES_PATH, render_properties(OLD))
    assert load_properties(storage) == OLD


def test_a_wrong_checksum_names_the_file_and_the_right_value() -> None:
    storage = memory()
    storage.write(PROPERTIES_PATH, render_properties({**OLD, CHECKSUM: "1"}))
    with pytest.raises(Corrupt) as caught:
        load_properties(storage)
    assert caught.value.facts["path"] == PROPERTIES_PATH
    assert str(table_checksum(OLD)) in str(caught.value)


def test_a_file_without_a_name_is_cut_off() -> None:
    storage = memory()
    storage.write(PROPERTIES_PATH, b"hoodie.table.ty")
    with pytest.raises(Corrupt, match="name is missing"):
        load_properties(storage)


def sealed(values: Mapping[str, str]) -> bytes:
    return render_properties({**values, CHECKSUM: str(table_checksum(values))})


@pytest.mark.parametrize("main", [None, b"", b"hoodie.table.na", sealed(OLD)[:-9]])
def test_the_backup_stands_in_for_a_missing_or_half_written_file(main: bytes | None) -> None:
    storage = memory()
    storage.write(BACKUP_PATH, sealed(OLD))
    if main is not None:
        storage.write(PROPERTIES_PATH, main)
    assert load_properties(storage)["colour"] == "old"
    recover_properties(storage)
    assert storage.read(PROPERTIES_PATH) == sealed(OLD)
    assert storage.stat(BACKUP_PATH) is None


def test_recovery_keeps_a_whole_file() -> None:
    storage = memory()
    storage.write(PROPERTIES_PATH, sealed(NEW))
    storage.write(BACKUP_PATH, sealed(OLD))
    assert load_properties(storage)["colour"] == "new"
    recover_properties(storage)
    assert load_properties(storage)["colour"] == "new"


def test_stale_checksum_files_go_before_the_file_changes() -> None:
    storage = memory()
    store_properties(storage, OLD)
    storage.write(".hoodie/.hoodie.properties.crc", b"old")
    store_properties(storage, NEW)
    assert storage.stat(".hoodie/.hoodie.properties.crc") is None


def test_update_sets_and_removes() -> None:
    storage = memory()
    store_properties(storage, OLD)
    after = update_properties(storage, {"colour": None, "size": "3"})
    assert "colour" not in after
    assert after["size"] == "3"
    assert load_properties(storage) == after


class Faulty:
    """A storage that fails from its n-th call on, before or after the call took effect."""

    def __init__(self, storage: Storage, calls: int, *, after: bool) -> None:
        self._storage, self._left, self._after = storage, calls, after

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._storage, name)
        return self._counted(member) if callable(member) else member

    def _counted(self, call: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self._left <= 0:
                raise Unavailable("gone")
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Unavailable("gone")
            answer = call(*args, **kwargs)
            if self._left == 0:
                raise Unavailable("gone")
            return answer

        return counted


CRASHES = [(calls, after) for calls in range(1, 14) for after in (False, True)]


@pytest.mark.parametrize(("calls", "after"), CRASHES)
def test_a_crash_at_any_step_leaves_a_readable_table(calls: int, after: bool) -> None:
    storage = memory()
    store_properties(storage, OLD)
    try:
        store_properties(Faulty(storage, calls, after=after), NEW)
        finished = True
    except Unavailable:
        finished = False
    assert load_properties(storage)["colour"] in (("new",) if finished else ("old", "new"))
    store_properties(storage, {**NEW, "colour": "newest"})
    assert load_properties(storage)["colour"] == "newest"
    assert storage.stat(BACKUP_PATH) is None


def test_the_crash_test_reaches_the_end() -> None:
    storage = memory()
    store_properties(storage, OLD)
    steps, _ = CRASHES[-1]
    store_properties(Faulty(storage, steps, after=False), NEW)


class Rival:
    """A storage in which another writer acts just before one file is created."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage, self._path = storage, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def create(self, path: str, data: bytes) -> bool:
        if path == self._path:
            self._storage.write(path, sealed(OLD))
        return self._storage.create(path, data)


@pytest.mark.parametrize("exists", [True, False])
def test_two_writers_do_not_both_win(exists: bool) -> None:
    storage = memory()
    if exists:
        store_properties(storage, OLD)
    with pytest.raises(Conflict):
        store_properties(Rival(storage, BACKUP_PATH if exists else PROPERTIES_PATH), NEW)
    assert load_properties(storage)["colour"] == "old"


class Vanishing:
    """A storage whose writer finishes between the reader's looks at the two files."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._reads = storage, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def read(self, path: str) -> bytes:
        self._reads += 1
        if self._reads == 2:
            self._storage.move(BACKUP_PATH, PROPERTIES_PATH)
        return self._storage.read(path)


def test_a_reader_between_two_files_looks_again() -> None:
    storage = memory()
    storage.write(BACKUP_PATH, sealed(OLD))
    assert load_properties(Vanishing(storage))["colour"] == "old"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(LakewrightError):
        parse_properties(data)
