"""Spark's hash of an int, so that a driver can choose values that land in a given partition."""

from functools import lru_cache

_MASK = 0xFFFFFFFF
#: The seed of the hash by which Spark divides rows.
_SEED = 42


def hash_int(value: int) -> int:
    """Return what ``hash(value)`` is in Spark SQL for an int: Murmur3, as a signed number."""
    mixed = _rotated(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    made = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    made ^= 4  # the length of an int
    made = (made ^ made >> 16) * 0x85EBCA6B & _MASK
    made = (made ^ made >> 13) * 0xC2B2AE35 & _MASK
    made ^= made >> 16
    return made - (1 << 32) if made >> 31 else made


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & _MASK


@lru_cache(maxsize=32)
def slots(count: int) -> tuple[int, ...]:
    """Return ints that ``repartition(count, column)`` puts into partition 0, 1, 2 and so on."""
    found: dict[int, int] = {}
    value = 0
    while len(found) < count:
        found.setdefault(hash_int(value) % count, value)
        value += 1
    return tuple(found[number] for number in range(count))
