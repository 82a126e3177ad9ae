"""What is raised over bad bytes, as our errors that say in which file, and where in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from lakewright.model.errors import Corrupt, Invalid, Unavailable, Unsupported


@contextmanager
def placed(path: str, offset: int) -> Iterator[None]:
    """Let errors about bytes say where these lie, unless whoever raised them knew it better."""
    try:
        yield
    except (Corrupt, Unsupported) as error:
        error.facts = {"path": path, "offset": offset} | {**error.facts}
        raise


@contextmanager
def arrow_failures(path: str, offset: int | Callable[[], int] = 0) -> Iterator[None]:
    """Turn Arrow's errors while reading ``path`` into ours; errors of storage pass unchanged.

    ``offset`` is where the bytes begin; a function is asked for it when it is needed.
    """

    def where() -> int:
        return offset if isinstance(offset, int) else offset()

    try:
        yield
    except (pa.ArrowNotImplementedError, Invalid) as cause:
        why = cause.message if isinstance(cause, Invalid) else f"{cause}."
        raise Unsupported(
            f"{path} cannot be read: {why}",
            next_step="Read it with software that knows how it was written, and write it anew.",
            path=path,
            offset=where(),
        ) from cause
    except pa.ArrowMemoryError as cause:
        raise Unsupported(
            f"{path} asks for more memory than there is: {cause}.",
            next_step="It is damaged, or its row groups are too large for this machine.",
            path=path,
            offset=where(),
        ) from cause
    except (pa.ArrowException, UnicodeDecodeError) as cause:
        raise Corrupt(f"{path} is damaged: {cause}.", path=path, offset=where()) from cause
    except OSError as cause:
        if cause.errno is not None:
            raise Unavailable(
                f"{path} could not be read: {cause}.",
                next_step="Try again; where that does not help, look at the storage.",
                path=path,
            ) from cause
        # Arrow reports a bad footer or page as an OSError without a number.
        raise Corrupt(f"{path} is damaged: {cause}.", path=path, offset=where()) from cause
