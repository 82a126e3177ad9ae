"""Mutations of bytes for the fuzzers: small lies that file formats are hurt by."""

from collections.abc import Callable, Sequence
from random import Random

LIMIT = 1 << 20
"""No input grows beyond this: longer ones cost time and find nothing new."""

_NUMBERS = (0, 1, -1, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, -(2**31), 2**32 - 1)
_WIDE = (2**53, 2**63 - 1, -(2**63))


def _spot(random: Random, data: bytes) -> int:
    """Return an offset; headers and footers hold the lengths, so both ends are preferred."""
    if not data:
        return 0
    near = min(len(data), 64)
    match random.randrange(4):
        case 0:
            return random.randrange(near)
        case 1:
            return len(data) - 1 - random.randrange(near)
        case _:
            return random.randrange(len(data))


def _overwrite(data: bytes, at: int, patch: bytes) -> bytes:
    return data[:at] + patch + data[at + len(patch) :]


def flip_bits(random: Random, data: bytes) -> bytes:
    """Flip one to eight single bits."""
    out = bytearray(data)
    for _ in range(random.randint(1, 8) if out else 0):
        out[_spot(random, data)] ^= 1 << random.randrange(8)
    return bytes(out)


def truncate(random: Random, data: bytes) -> bytes:
    """Cut the end off, as a crashed writer does."""
    return data[: _spot(random, data)]


def cut_out(random: Random, data: bytes) -> bytes:
    """Remove a piece from the middle."""
    at = _spot(random, data)
    return data[:at] + data[at + random.randint(1, 1 + len(data) // 4) :]


def repeat(random: Random, data: bytes) -> bytes:
    """Write a piece several times over."""
    at = _spot(random, data)
    piece = data[at : at + random.randint(1, 256)]
    return data[:at] + piece * random.randint(2, 16) + data[at:]


def insert_noise(random: Random, data: bytes) -> bytes:
    """Put random bytes somewhere."""
    at = _spot(random, data)
    return data[:at] + random.randbytes(random.randint(1, 32)) + data[at:]


def lie_about_length(random: Random, data: bytes) -> bytes:
    """Write a telling number over what may be a length field, in either byte order."""
    width = random.choice((1, 2, 4, 8))
    number = random.choice(_NUMBERS + (_WIDE if width == 8 else ()))
    order = random.choice(("big", "little"))
    patch = (number % (1 << 8 * width)).to_bytes(width, order)
    return _overwrite(data, _spot(random, data), patch)


def nudge_length(random: Random, data: bytes) -> bytes:
    """Add a little to a field that is there, so that it nearly fits."""
    width, at = random.choice((1, 2, 4, 8)), _spot(random, data)
    order = random.choice(("big", "little"))
    field = int.from_bytes(data[at : at + width], order)
    patch = ((field + random.randint(-16, 16)) % (1 << 8 * width)).to_bytes(width, order)
    return _overwrite(data, at, patch)


def lie_in_varint(random: Random, data: bytes) -> bytes:
    """Write a zigzag variable-length number (Avro's lengths and counts) over what is there."""
    number = random.choice(_NUMBERS + _WIDE)
    rest = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    patch = bytearray()
    while rest > 127:
        patch.append(rest & 127 | 128)
        rest >>= 7
    patch.append(rest)
    return _overwrite(data, _spot(random, data), bytes(patch))


def change_digit(random: Random, data: bytes) -> bytes:
    """Replace a run of text with digits and signs, for the textual formats."""
    patch = "".join(random.choices('0123456789-.eE"{}[]:,=\\%/', k=random.randint(1, 6)))
    return _overwrite(data, _spot(random, data), patch.encode())


SINGLE: Sequence[Callable[[Random, bytes], bytes]] = (
    flip_bits,
    truncate,
    cut_out,
    repeat,
    insert_noise,
    lie_about_length,
    nudge_length,
    lie_in_varint,
    change_digit,
)


def splice(random: Random, first: bytes, second: bytes) -> bytes:
    """Join the head of one input to the tail of another."""
    return first[: _spot(random, first)] + second[_spot(random, second) :]


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a new input: one of the corpus with one to four lies, or plain noise."""
    if not corpus or random.random() < 0.01:
        return random.randbytes(random.randint(0, 512))
    data = random.choice(corpus)
    if random.random() < 0.1:
        data = splice(random, data, random.choice(corpus))
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        data = random.choice(SINGLE)(random, data)[:LIMIT]
    return data
