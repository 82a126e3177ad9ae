"""Which blocks of a slice's log files count, and in which order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lakewright.format.hudi.log.blocks import BlockKind, LogBlock

#: Blocks of HFiles too: nobody here reads them, but who passed over them would lose rows.
_RECORDS = frozenset(
    {BlockKind.AVRO_DATA, BlockKind.HFILE_DATA, BlockKind.PARQUET_DATA, BlockKind.DELETE}
)


def live_blocks(
    blocks: Iterable[LogBlock], *, visible: Callable[[str], bool]
) -> tuple[LogBlock, ...]:
    """Return the blocks whose records count, in merge order.

    ``blocks`` come in the order of the log files, ``visible`` says whether an instant is
    committed and not later than the time that is read. A rollback block takes back the blocks
    of its target that come before it. A block made by log compaction stands for the blocks of
    the instants that it names, at the place of the latest of them. Corrupt blocks, CDC blocks
    and blocks without an instant do not count.
    """
    kept: list[LogBlock] = []
    for block in blocks:
        if block.kind is BlockKind.COMMAND:
            if block.target_instant is not None:
                kept = [b for b in kept if b.instant != block.target_instant]
        elif block.kind in _RECORDS and block.instant is not None:
            kept.append(block)
    # Asked last: about an instant that was taken back the whole history may have to be read.
    return tuple(_with_compacted([b for b in kept if b.instant and visible(b.instant)]))


@dataclass(frozen=True, slots=True)
class _Placed:
    place: int
    number: int
    block: LogBlock


def _with_compacted(blocks: Sequence[LogBlock]) -> Iterable[LogBlock]:
    replaced = {i: b.instant for b in blocks for i in b.compacted_instants if i != b.instant}
    if not replaced:
        return blocks
    last = {b.instant: place for place, b in enumerate(blocks) if b.instant is not None}

    def place_of(block: LogBlock, own: int) -> int:
        originals = _originals(block, blocks)
        return max((last[i] for i in originals if i in last), default=own)

    placed = [
        _Placed(place_of(block, own) if block.compacted_instants else own, own, block)
        for own, block in enumerate(blocks)
        if block.instant not in replaced
    ]
    return [p.block for p in sorted(placed, key=lambda p: (p.place, p.number))]


def _originals(block: LogBlock, blocks: Sequence[LogBlock]) -> frozenset[str]:
    """Return the plain instants behind a compacted block, through compactions of compactions."""
    parts = {b.instant: b.compacted_instants for b in blocks if b.compacted_instants}
    plain: set[str] = set()
    seen: set[str] = set()
    waiting = list(block.compacted_instants)
    while waiting:
        instant = waiting.pop()
        if instant in seen:
            continue
        seen.add(instant)
        if instant in parts:
            waiting.extend(parts[instant])
        else:
            plain.add(instant)
    return frozenset(plain)
