"""Exactly once: batches of streams are found again, on the timeline and behind it."""

import json

import pytest

from lakewright.actions.write.stream_batch import CHECKPOINT, StreamBatch
from lakewright.model.errors import AlreadyExists, Corrupt
from support.tiny_tables import TinyTable, base_name

BATCH = StreamBatch("query-1", 7)


def written(*records: dict[str, str] | None) -> TinyTable:
    """A table with one commit per record, from minute 1 on."""
    table = TinyTable(partition_by="")
    for minute, record in enumerate(records, 1):
        extra = {} if record is None else {CHECKPOINT: json.dumps(record)}
        files = {"": {base_name(f"g{minute}", minute): b""}}
        table.commit(minute, files, extra=extra)
    return table


def test_the_record_has_the_form_of_hudis_own_sink() -> None:
    assert BATCH.metadata == {"_hudi_streaming_sink_checkpoint": '{"query-1": "7"}'}


@pytest.mark.parametrize("number", ["7", "8"])
def test_a_batch_on_the_timeline_is_not_written_again(number: str) -> None:
    state = written({"query-1": number}, None, {"other": "9"}).state()
    with pytest.raises(AlreadyExists, match="batch 7 of stream query-1"):
        BATCH.check(state)
    assert BATCH.is_in(state) and not StreamBatch("query-1", 9).is_in(state)


def test_other_batches_and_streams_are_in_nobodys_way() -> None:
    BATCH.check(written().state())
    BATCH.check(written(None, {"query-1": "6"}, {"query-2": "7"}).state())
    odd = written(None).commit(5, {"": {}}, extra={CHECKPOINT: "not json"})
    BATCH.check(odd.commit(6, {"": {}}, extra={CHECKPOINT: "[1]"}).state())


def test_rivals_that_wrote_the_batch_meanwhile_win() -> None:
    state = written(None, {"query-1": "7"}).state()
    rivals = list(state.timeline.commits(state.timeline.data()))
    with pytest.raises(AlreadyExists):
        BATCH.guard(rivals)
    BATCH.guard(rivals[:1])


def test_a_batch_is_found_when_its_commit_left_the_timeline() -> None:
    table = written({"query-1": "7"}, None)
    state = table.state()
    BATCH.done(state.storage, state.timeline.data()[0])
    names = [f.path for f in table.storage.list(table.timeline)]
    table.storage.delete(n for n in names if "20261115000100" in n.rpartition("/")[2])
    with pytest.raises(AlreadyExists):
        BATCH.check(table.state())
    StreamBatch("query-1", 8).check(table.state())


def test_the_first_batch_leaves_a_note_before_it_is_written() -> None:
    table = written(None)
    BATCH.begin(table.state())
    BATCH.check(table.state())
    table.commit(3, {"": {}}, extra=dict(BATCH.metadata))
    with pytest.raises(AlreadyExists):
        BATCH.check(table.state())
    with pytest.raises(AlreadyExists):
        BATCH.begin(table.state())


def test_a_note_that_was_lost_does_not_hide_what_the_timeline_tells() -> None:
    table = written({"query-1": "7"}, None)
    with pytest.raises(AlreadyExists):
        BATCH.begin(table.state())
    assert not list(table.storage.list(".hoodie/.aux", recursive=True))
    StreamBatch("query-1", 8).begin(table.state())
    with pytest.raises(AlreadyExists):
        BATCH.begin(table.state())


def test_the_note_of_a_stream_is_one_file_that_does_not_grow() -> None:
    table = written(None, None)
    sizes = set()
    for number in range(100, 130):
        StreamBatch("query-1", number).done(table.storage, table.state().timeline.data()[1])
        notes = list(table.storage.list(".hoodie/.aux", recursive=True))
        sizes.add((len(notes), notes[0].size))
    assert len(sizes) == 1


def test_a_damaged_note_is_named() -> None:
    table = written(None)
    BATCH.begin(table.state())
    note = next(iter(table.storage.list(".hoodie/.aux", recursive=True))).path
    table.storage.write(note, b"{")
    with pytest.raises(Corrupt, match="no note of a stream"):
        BATCH.check(table.state())
