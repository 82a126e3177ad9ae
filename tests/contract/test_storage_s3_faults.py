"""S3 when the network or the server fails: answers that are lost, cut, late or errors."""

import uuid
from collections.abc import Iterator

import pytest

from lakewright.model.errors import (
    CommitStateUnknown,
    Denied,
    Invalid,
    NotFound,
    Unavailable,
    Unsupported,
)
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.s3_server import S3Server, running_s3_server

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with running_s3_server() as running:
        running.make_bucket("lake")
        yield running


@pytest.fixture
def storage(server: S3Server) -> Storage:
    server.set_faults()
    options = {**server.options, "s3.attempts": "3", "s3.timeout": "2"}
    return open_storage(f"s3://lake/{uuid.uuid4().hex}", options)


def put(how: object, **details: object) -> dict:
    return {"method": "PUT", "key": "/f", "how": how, **details}


def get(how: object, **details: object) -> dict:
    return {"method": "GET", "key": "/f", "how": how, **details}


ONCE = ["lose", "drop", 500, 503, 409, {"how": "hang", "seconds": 2.5}]


def fault(how: object, **details: object) -> dict:
    return put(**{**how, **details}) if isinstance(how, dict) else put(how, **details)


@pytest.mark.parametrize("how", ONCE, ids=str)
def test_create_survives_one_failure_and_knows_its_own_file(storage, server, how):
    server.set_faults(fault(how))
    assert storage.create("f", b"mine") is True
    assert storage.read("f") == b"mine"


@pytest.mark.parametrize("how", ONCE, ids=str)
def test_replace_if_survives_one_failure_and_knows_its_own_file(storage, server, how):
    storage.write("f", b"old")
    version = storage.stat("f").version
    server.set_faults(fault(how))
    assert storage.replace_if("f", b"mine", version) is True
    assert storage.read("f") == b"mine"


@pytest.mark.parametrize("how", [503, 409])
def test_create_that_was_turned_away_loses_to_another(storage, server, how):
    storage.write("f", b"theirs")
    server.set_faults(put(how))
    assert storage.create("f", b"mine") is False
    assert storage.read("f") == b"theirs"


@pytest.mark.parametrize("how", [500, "drop"])
def test_create_that_may_have_been_done_does_not_guess(storage, server, how):
    # The first request may have been done and its file replaced since: nobody can tell.
    storage.write("f", b"theirs")
    server.set_faults(put(how))
    with pytest.raises(CommitStateUnknown):
        storage.create("f", b"mine")
    assert storage.read("f") == b"theirs"


def test_create_whose_every_answer_is_lost_finds_its_file(storage, server):
    server.set_faults(put("lose", times=3))
    assert storage.create("f", b"mine") is True
    assert [line for line in server.seen() if line.startswith("PUT")] == [
        f"PUT /{storage.uri.removeprefix('s3://')}/f?"
    ] * 3


def test_create_whose_every_request_is_dropped_is_unknown(storage, server):
    server.set_faults(put("drop", times=3))
    with pytest.raises(CommitStateUnknown):
        storage.create("f", b"mine")
    assert storage.stat("f") is None


def test_a_server_without_conditional_writes_is_told_so(storage, server):
    server.set_faults(put(501))
    with pytest.raises(Unsupported, match="conditional-writes=false"):
        storage.create("f", b"mine")
    plain = open_storage(storage.uri, {**storage.options, "s3.conditional-writes": "false"})
    assert plain.can_create_atomically is False
    assert plain.create("f", b"1") is True
    assert plain.create("f", b"2") is False
    version = plain.stat("f").version
    assert plain.replace_if("f", b"3", version) is True
    assert plain.replace_if("f", b"4", version) is False
    assert plain.read("f") == b"3"


def test_create_that_is_turned_away_every_time_is_unavailable(storage, server):
    server.set_faults(put(503, times=3))
    with pytest.raises(Unavailable) as caught:
        storage.create("f", b"mine")
    assert caught.value.retryable
    assert storage.stat("f") is None


@pytest.mark.parametrize("how", ["lose", "drop", 500, 503])
def test_write_is_repeated(storage, server, how):
    server.set_faults(put(how, times=2))
    storage.write("f", b"mine")
    assert storage.read("f") == b"mine"
    server.set_faults(put(how, times=3))
    with pytest.raises(Unavailable):
        storage.write("f", b"again")


@pytest.mark.parametrize("how", ["lose", "cut", 500, 503, {"how": "hang", "seconds": 2.5}], ids=str)
def test_reads_are_repeated(storage, server, how):
    details = how if isinstance(how, dict) else {"how": how}
    storage.write("f", bytes(1_000_000))
    server.set_faults(get(**details))
    assert storage.read("f") == bytes(1_000_000)
    server.set_faults(get(**details))
    assert storage.read_range("f", 10, 500_000) == bytes(500_000)
    server.set_faults(get(**details))
    with storage.open("f") as file:
        server.set_faults(get(**details))
        assert file.read() == bytes(1_000_000)


def test_parts_of_a_stream_are_repeated(storage, server):
    server.set_faults(put("lose", times=2))
    with storage.writer("f") as file:
        for _ in range(20):
            file.write(bytes(1_000_000))
    assert storage.read("f") == bytes(20_000_000)


def test_a_stream_that_fails_leaves_no_parts_behind(storage, server):
    server.set_faults(put(500, times=100))
    with pytest.raises(Unavailable), storage.writer("f") as file:
        file.write(bytes(70_000_000))
    assert storage.stat("f") is None
    assert [line for line in server.seen() if line.startswith("DELETE") and "uploadId" in line]


def test_reads_give_up_after_the_last_attempt(storage, server):
    storage.write("f", bytes(1_000))
    server.set_faults(get("cut", times=3))
    with pytest.raises(Unavailable):
        storage.read("f")
    assert storage.read("f") == bytes(1_000)


def test_lists_are_repeated(storage, server):
    for number in range(60):
        storage.write(f"d/{number}", b"")
    server.set_faults(
        {"method": "GET", "key": "/lake", "how": 503, "times": 1},
        {"method": "GET", "key": "/lake", "how": "cut", "times": 1},
    )
    assert len(list(storage.list("d"))) == 60
    server.set_faults({"method": "GET", "key": "/lake", "how": 503, "times": 50})
    with pytest.raises(Unavailable):
        list(storage.walk())


def test_a_file_that_is_replaced_while_it_is_read_is_noticed(storage):
    storage.write("f", b"1" * 2_000_000)
    with storage.open("f") as file:
        file.read(10)
        storage.write("f", b"2" * 2_000_000)
        file.seek(1_200_000)
        with pytest.raises(Unavailable, match="replaced"):
            file.read(10)


def test_refusals_and_absent_buckets_have_their_own_errors(storage, server):
    server.set_faults({"method": "GET", "key": "/f", "how": 403})
    with pytest.raises(Denied):
        storage.read("f")
    server.set_faults(put(403))
    with pytest.raises(Denied):
        storage.create("f", b"")
    server.set_faults({"method": "HEAD", "key": "/f", "how": 403})
    with pytest.raises(Denied):
        storage.stat("f")
    nowhere = open_storage("s3://no-such-bucket/t", storage.options)
    with pytest.raises(NotFound, match="bucket"):
        list(nowhere.list())
    with pytest.raises(NotFound, match="bucket"):
        nowhere.create("f", b"")
    assert nowhere.stat("f") is None


def test_a_server_that_is_not_there_is_unavailable(storage):
    options = {**storage.options, "s3.endpoint": "http://127.0.0.1:9", "s3.attempts": "2"}
    away = open_storage("s3://lake/t", options)
    for attempt in (
        lambda: away.read("f"),
        lambda: away.create("f", b""),
        lambda: away.stat("f"),
        lambda: list(away.walk()),
        lambda: away.delete(["f"]),
    ):
        with pytest.raises(Unavailable):
            attempt()
    with pytest.raises(Invalid):
        open_storage("s3://lake/t", {**options, "s3.endpoint": "nonsense"}).read("f")


def test_deletes_go_a_thousand_at_a_time(storage, server):
    storage.delete(f"d/{number}" for number in range(2_500))
    assert len([line for line in server.seen() if line.startswith("POST")]) == 3


def test_opening_reads_the_end_and_small_files_whole(storage, server):
    storage.write("f", bytes(200_000))
    server.set_faults()
    with storage.open("f") as file:
        assert file.read() == bytes(200_000)
    assert len(server.seen()) == 1


def test_a_small_tree_is_walked_with_one_request(storage, server):
    for number in range(20):
        storage.write(f"d{number}/f", b"")
    server.set_faults()
    assert len(list(storage.walk())) == 20
    assert len(server.seen()) == 1


def test_folder_markers_and_keys_without_a_path_are_left_out(storage, server):
    from lakewright.storage.s3_client import client_for

    prefix = storage.uri.removeprefix("s3://lake/")
    for key in ("d/", "d//x", "d/f", "/lead", "e/../x", "./y"):
        client_for(storage.options).put_object(Bucket="lake", Key=f"{prefix}/{key}", Body=b"")
    assert [file.path for file in storage.list(recursive=True)] == ["d/f"]
    assert [(folder.path, list(folder.names)) for folder in storage.walk()] == [("d", ["f"])]
    assert "d" in storage.folders()
