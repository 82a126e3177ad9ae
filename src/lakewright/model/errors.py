"""Every error of Lakewright.

* LakewrightError            code, message, facts, next step; one except clause catches all
  * NotFound                 the named thing does not exist
    * TableNotFound
    * InstantNotFound
  * AlreadyExists            the thing to be created is there already
  * Invalid                  the caller must change the request
    * InvalidOption
    * InvalidExpression
      * UnknownColumn
    * InvalidPath            a path leaves the table's root, or is no path at all
  * Unsupported              the request is sound, but this table or build cannot do it
    * MissingExtra           an optional package is not installed
  * Corrupt                  bytes on storage do not follow the format
  * HistoryGone              the history asked for was cleaned or archived away
    * SnapshotGone           what was being read was taken away meanwhile  (retryable)
  * Conflict                 another writer won; refresh and try again   (retryable)
  * Denied                   storage or a server refused the permission
  * Unavailable              storage or a server did not answer          (retryable)
  * CommitStateUnknown       it may or may not have happened: never retry blindly
"""

from collections.abc import Mapping
from typing import ClassVar


class LakewrightError(Exception):
    """Base of every error that Lakewright raises on purpose.

    ``facts`` are the values a program may want (names, paths, offsets); ``next_step`` is the
    sentence that tells a person what to do, and ends the printed message.
    """

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, next_step: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.facts: Mapping[str, object] = facts

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}" if self.next_step else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark workers); keyword facts need their own way back.
        return (_restore, (type(self), self.message, self.next_step, dict(self.facts)))


def _restore(
    kind: type[LakewrightError], message: str, next_step: str | None, facts: dict[str, object]
) -> LakewrightError:
    return kind(message, next_step=next_step, **facts)


class NotFound(LakewrightError):
    """The named thing does not exist."""

    code = "not_found"


class TableNotFound(NotFound):
    """No table at this path, or under this name."""

    code = "table_not_found"


class InstantNotFound(NotFound):
    """The timeline holds no such instant."""

    code = "instant_not_found"


class AlreadyExists(LakewrightError):
    """The thing to be created is there already."""

    code = "already_exists"


class Invalid(LakewrightError):
    """The caller must change the request."""

    code = "invalid"


class InvalidOption(Invalid):
    """An option has a value that its declaration does not accept."""

    code = "invalid_option"


class InvalidExpression(Invalid):
    """An expression cannot be read, or does not fit the columns it names."""

    code = "invalid_expression"


class UnknownColumn(InvalidExpression):
    """A name that is not a column of the table."""

    code = "unknown_column"


class InvalidPath(Invalid):
    """A path leaves the table's root, or is no path at all."""

    code = "invalid_path"


class Unsupported(LakewrightError):
    """The request is sound, but this table or this build cannot do it."""

    code = "unsupported"


class MissingExtra(Unsupported):
    """An optional package is not installed; the next step is the ``pip install`` line."""

    code = "missing_extra"


class Corrupt(LakewrightError):
    """Bytes on storage do not follow the format; facts hold ``path``, in data files ``offset``."""

    code = "corrupt"


class HistoryGone(LakewrightError):
    """The history asked for was cleaned, archived or taken back: no exact answer can be given."""

    code = "history_gone"


class SnapshotGone(HistoryGone):
    """Files of the state that was being read were taken away meanwhile; read it as it is now."""

    code = "snapshot_gone"
    retryable = True


class Conflict(LakewrightError):
    """Another writer won; refresh and try again."""

    code = "conflict"
    retryable = True


class Denied(LakewrightError):
    """Storage or a server refused the permission or the credentials; trying again is no use."""

    code = "denied"


class Unavailable(LakewrightError):
    """Storage or a server did not answer in time."""

    code = "unavailable"
    retryable = True


class CommitStateUnknown(LakewrightError):
    """The commit may or may not have been applied; read the timeline before anything else."""

    code = "commit_state_unknown"
