"""Creating a file of the timeline once, whatever becomes of the answers."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from lakewright.model.errors import CommitStateUnknown, Denied, LakewrightError, NotFound
from lakewright.model.logs import facts
from lakewright.storage import s3_options
from lakewright.storage.port import Storage

log = logging.getLogger(__name__)

ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Patience:
    """How long writing to a store may take, in seconds; 0 for files of this machine, where a
    call that has returned is over.

    ``request`` bounds one request, ``call`` the repetitions of it that the store's adapter makes:
    after that much time it has taken effect, or never will.
    """

    request: float
    call: float

    @staticmethod
    def with_store(storage: Storage) -> "Patience":
        """Return the bounds for a store."""
        if storage.uri.startswith(("/", "memory://")):
            return Patience(0.0, 0.0)
        if storage.uri.startswith(("s3://", "s3a://", "s3n://")):
            request = s3_options.TIMEOUT.read(storage.options) + _SLACK
            return Patience(request, request * s3_options.ATTEMPTS.read(storage.options))
        return Patience(_REQUEST, _REQUEST)


#: Seconds for a request to a store of unknown kind.
_REQUEST = 120.0
#: Seconds for the pause before a request, and for the store's own work on it.
_SLACK = 10.0


def create_once(
    storage: Storage,
    path: str,
    body: bytes,
    *,
    anew: bool = False,
    again: Callable[[], None] = lambda: None,
) -> bool:
    """Create a file; False where another content lies there, with ``anew`` any content at all.

    A failed attempt is settled by reading back, and repeated when nothing is there, after
    ``again`` was asked, which raises where it must not be. Errors mean that nothing is there;
    ``CommitStateUnknown`` that even reading back failed.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            if storage.create(path, body):
                return True
            return not (anew and attempt == 1) and _is_there(storage, path, body)
        except LakewrightError as error:
            if _is_there(storage, path, body, error):
                return True
            if isinstance(error, Denied) or attempt == ATTEMPTS:
                raise
            log.info("trying again", extra=facts(path=path, attempt=attempt, error=str(error)))
        time.sleep(random.uniform(0.5, 1.5) * 0.01 * 3**attempt)
        again()
    raise AssertionError("unreachable: the last attempt returns or raises")


def _is_there(
    storage: Storage, path: str, body: bytes, cause: LakewrightError | None = None
) -> bool:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return storage.read(path) == body
        except NotFound:
            return False
        except LakewrightError as error:
            if attempt == ATTEMPTS:
                raise CommitStateUnknown(
                    f"It cannot be found out whether {path!r} of {storage.uri} was written: "
                    f"{error}",
                    next_step="Read the timeline before anything else; nothing was deleted.",
                    path=path,
                ) from (cause or error)
        time.sleep(random.uniform(0.5, 1.5) * 0.01 * 3**attempt)
    raise AssertionError("unreachable: the last attempt returns or raises")
