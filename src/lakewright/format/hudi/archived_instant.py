"""An instant of the archived timeline, in the same form for both layouts."""

from dataclasses import dataclass

from lakewright.model.instant import Instant


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant with the bytes of its completed file and of its plan.

    Both are None where the archive kept nothing; the decoders of ``metadata`` read them.
    """

    instant: Instant
    metadata: bytes | None = None
    plan: bytes | None = None
