"""What a write tells: sums over partitions, as text and as a table."""

from lakewright.model.instant import Action, Instant, State
from lakewright.model.writing import Operation, PartitionWritten, WriteResult

DONE = Instant("20261101000000000", Action.COMMIT, State.COMPLETED, "20261101000001000")
PARTS = {
    "dt=<1>": PartitionWritten(inserted=1, updated=2, files=1, bytes=10),
    "dt=2": PartitionWritten(deleted=3, files=2, bytes=20),
}


def test_counts_are_summed_over_partitions() -> None:
    result = WriteResult(Operation.UPSERT, DONE, PARTS)
    sums = (result.inserted, result.updated, result.deleted, result.files, result.bytes)
    assert sums == (1, 2, 3, 3, 30)


def test_a_result_reads_as_a_line() -> None:
    text = str(WriteResult(Operation.UPSERT, DONE, PARTS))
    assert text == (
        "UPSERT 20261101000000000: 1 inserted, 2 updated, 3 deleted; "
        "3 files, 30 bytes, 2 partitions"
    )
    guessed = str(WriteResult(Operation.UPSERT, DONE, PARTS, exact=False))
    assert ": about 1 inserted" in guessed
    assert "nothing to write" in str(WriteResult(Operation.INSERT, None))


def test_a_notebook_shows_a_row_per_partition() -> None:
    page = WriteResult(Operation.UPSERT, DONE, PARTS)._repr_html_()
    assert page.count("<tr>") == 3
    assert "dt=&lt;1&gt;" in page
