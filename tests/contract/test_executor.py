"""The executor port: what tasks may rely on, whoever runs them."""

import threading
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from lakewright.actions.executor import Attempt, Spread, Staged
from lakewright.actions.write.rows import ArrowRows
from lakewright.engine.local.executor import LocalExecutor
from lakewright.model.errors import Conflict
from lakewright.model.schema import LONG


@pytest.fixture(params=["1", "4"], ids=["one thread", "four threads"])
def executor(request: pytest.FixtureRequest) -> LocalExecutor:
    return LocalExecutor({"lakewright.write.threads": request.param})


def rows(count: int) -> ArrowRows:
    return ArrowRows.of(pa.table({"n": pa.array(range(count), pa.int64())}))


def doubled(shared: int, item: int, attempt: Attempt) -> tuple[int, str]:
    return shared * item, attempt.token


def refusing(shared: list[int], item: int, attempt: Attempt) -> int:
    shared.append(item)
    if item == 7:
        raise Conflict("item 7", item=item)
    return item


def summed(shared: int, batches: Iterable[pa.RecordBatch], attempt: Attempt) -> Iterator[int]:
    yield shared * sum(sum(batch.column("n").to_pylist()) for batch in batches)


def cut(shared: int, batches: Iterable[pa.RecordBatch], attempt: Attempt) -> Iterator[list[int]]:
    values = [value for batch in batches for value in batch.column("n").to_pylist()]
    for start in range(0, len(values), 10):
        yield values[start : start + 10]


def worked(shared: int, item: list[int], attempt: Attempt) -> tuple[tuple[int, str], ...]:
    return ((shared * sum(item), attempt.token),)


def test_map_runs_every_item_once_each_with_its_own_token(executor: LocalExecutor) -> None:
    made = list(executor.map(doubled, 2, list(range(50)), size=lambda item: item))
    assert sorted(value for value, _ in made) == [2 * item for item in range(50)]
    assert len({token for _, token in made}) == 50
    assert all(len(token.split("-")) == 3 for _, token in made)
    again = list(executor.map(doubled, 2, list(range(50)), size=lambda item: item))
    assert not {token for _, token in made} & {token for _, token in again}


def test_map_of_nothing(executor: LocalExecutor) -> None:
    assert list(executor.map(doubled, 2, [], size=lambda item: item)) == []


def test_the_first_error_is_raised_and_no_further_item_begins(executor: LocalExecutor) -> None:
    begun: list[int] = []
    with pytest.raises(Conflict) as refusal:
        list(executor.map(refusing, begun, list(range(1000)), size=lambda item: 1000 - item))
    assert refusal.value.facts == {"item": 7}
    assert len(begun) < 50


def test_large_items_begin_first() -> None:
    begun: list[int] = []
    one = LocalExecutor({"lakewright.write.threads": "1"})
    list(one.map(lambda shared, item, attempt: begun.append(item), None, [1, 9, 4], size=abs))
    assert begun == [9, 4, 1]


def test_items_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=30)
    two = LocalExecutor({"lakewright.write.threads": "2"})
    meet = two.map(lambda shared, item, attempt: both.wait(), None, [1, 2], size=abs)
    assert sorted(meet) == [0, 1]


def test_a_stream_sees_every_row_once(executor: LocalExecutor) -> None:
    assert sum(executor.stream(summed, 3, rows(100), Spread())) == 3 * sum(range(100))


def test_a_stream_in_two_stages(executor: LocalExecutor) -> None:
    made = list(executor.stream(Staged(cut, worked), 2, rows(95), Spread()))
    assert sum(value for value, _ in made) == 2 * sum(range(95))
    assert len({token for _, token in made}) == 10


def test_few_rows_are_taken_whole_or_not_at_all(executor: LocalExecutor) -> None:
    taken = executor.few(rows(10), 1 << 20)
    assert taken is not None
    assert taken.column("n").to_pylist() == list(range(10))
    assert executor.few(rows(10_000), 1000) is None
    assert [str(field) for field in executor.schema(rows(1))] == [f"n: {LONG}"]


def test_a_reader_is_gone_through_once_or_kept() -> None:
    def reader() -> ArrowRows:
        table = pa.table({"n": pa.array(range(10), pa.int64())})
        return ArrowRows(table.schema, table.to_reader, once=True)

    once, often = LocalExecutor({}, once=True), LocalExecutor({})
    assert list(once.stream(summed, 1, reader(), Spread())) == [45]
    kept = reader()
    assert [list(often.stream(summed, 1, kept, Spread())) for _ in range(2)] == [[45], [45]]
