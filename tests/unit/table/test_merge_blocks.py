"""Which log blocks count, and in which order."""

from lakewright.format.hudi.log.blocks import BlockKind, HeaderKey, LogBlock
from lakewright.table.merge.blocks import live_blocks


def block(instant: str | None, kind: BlockKind = BlockKind.AVRO_DATA, **header: str) -> LogBlock:
    held = {HeaderKey[name]: value for name, value in header.items()}
    if instant is not None:
        held[HeaderKey.INSTANT_TIME] = instant
    return LogBlock(kind, held, 0, 0, 0, "log")


def rollback(instant: str, target: str) -> LogBlock:
    return block(instant, BlockKind.COMMAND, TARGET_INSTANT_TIME=target, COMMAND_BLOCK_TYPE="0")


def compacted(instant: str, *parts: str) -> LogBlock:
    return block(instant, COMPACTED_BLOCK_TIMES=",".join(parts))


def kept(*blocks: LogBlock, hidden: str = "") -> list[str | None]:
    return [b.instant for b in live_blocks(blocks, visible=lambda instant: instant not in hidden)]


def test_blocks_of_hidden_instants_are_passed_over() -> None:
    assert kept(block("1"), block("2"), block("3"), hidden="2") == ["1", "3"]


def test_corrupt_and_change_blocks_and_blocks_without_instant_are_passed_over() -> None:
    others = [block(None), block(None, BlockKind.CORRUPT), block("1", BlockKind.CDC_DATA)]
    assert kept(*others, block("2", BlockKind.DELETE), block("3", BlockKind.PARQUET_DATA)) == [
        "2",
        "3",
    ]


def test_blocks_that_are_not_read_here_count_all_the_same() -> None:
    # Their reader refuses them by name; passed over, their records would be missing.
    assert kept(block("1"), block("2", BlockKind.HFILE_DATA)) == ["1", "2"]


def test_a_rollback_takes_back_what_came_before_it() -> None:
    assert kept(block("1"), block("2"), block("2"), rollback("3", "2"), block("4")) == ["1", "4"]


def test_nobody_is_asked_about_what_a_rollback_took_back() -> None:
    asked: list[str] = []
    live_blocks(
        [block("1"), block("2"), rollback("3", "2")],
        visible=lambda instant: asked.append(instant) is None,
    )
    assert asked == ["1"], "the history may have to be read for the answer"


def test_a_rollback_leaves_what_comes_after_it() -> None:
    assert kept(block("1"), rollback("2", "1"), block("1")) == ["1"]


def test_a_compacted_block_stands_for_its_parts() -> None:
    assert kept(block("1"), block("2"), compacted("3", "1", "2"), block("4")) == ["3", "4"]


def test_a_compacted_block_takes_the_place_of_its_latest_part() -> None:
    # 3 was written while 4 merged 1 and 2: it is the newer record.
    assert kept(block("1"), block("2"), block("3"), compacted("4", "1", "2")) == ["4", "3"]


def test_a_compaction_of_compactions_stands_for_all_parts() -> None:
    blocks = [block("1"), block("2"), compacted("3", "1"), compacted("4", "3", "2"), block("5")]
    assert kept(*blocks) == ["4", "5"]
    # The part that was compacted twice came before 2, which is not part of either.
    assert kept(block("1"), compacted("3", "1"), block("2"), compacted("4", "3")) == ["4", "2"]


def test_a_compacted_block_whose_parts_are_gone_keeps_its_place() -> None:
    assert kept(block("5"), compacted("6", "1", "2"), block("7")) == ["5", "6", "7"]


def test_a_hidden_compaction_leaves_its_parts() -> None:
    assert kept(block("1"), block("2"), compacted("3", "1", "2"), hidden="3") == ["1", "2"]
