"""Options: each is declared once, and the reference page is written from the declarations.

A key that no option has would be a wish that nobody hears: ``check_options`` and
``check_properties`` refuse it where its name is one of ours, warn where it looks like a slip of
one that is known, and say so in the log where it is another of Hudi's, whose settings are many and
mostly of no meaning here.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from lakewright.model.errors import InvalidOption
from lakewright.model.logs import facts
from lakewright.model.option_names import OPTIONS, PROPERTIES, PROPERTY_PREFIXES

log = logging.getLogger(__name__)

T = TypeVar("T")

#: What begins so is ours alone.
_OWN = ("lakewright.", "s3.", "arrow.", "fsspec.")
#: How alike two names are of which one is a slip of the other, as ``difflib`` counts.
_SLIP = 0.9


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One named setting: its key, how text becomes a value, its default and its sense.

    ``old_keys`` are other names under which the value is accepted (Hudi's own names among
    them); the first key that is present wins, in the order ``key``, then ``old_keys``.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    since: str
    allowed: str
    old_keys: tuple[str, ...] = ()

    def read(self, values: Mapping[str, str]) -> T:
        """Return the parsed value; an absent key gives the default, an empty text does not."""
        for key in (self.key, *self.old_keys):
            if key in values:
                _check_text(key, values[key])
                try:
                    return self.parse(values[key])
                except ValueError as cause:
                    raise InvalidOption(
                        f"{key}: {values[key]!r} is not allowed.",
                        next_step=f"Allowed: {self.allowed}.",
                        key=key,
                        value=values[key],
                    ) from cause
        return self.default

    def given(self, values: Mapping[str, str]) -> bool:
        """Say whether any of the option's names is present."""
        return any(key in values for key in (self.key, *self.old_keys))


_DECLARED: dict[str, Option[Any]] = {}


def declare(
    key: str,
    parse: Callable[[str], T],
    default: T,
    *,
    doc: str,
    since: str,
    allowed: str,
    old_keys: tuple[str, ...] = (),
) -> Option[T]:
    """Declare an option, once for the whole program; a second declaration of a name is a bug."""
    option = Option(key, parse, default, doc, since, allowed, old_keys)
    for name in (key, *old_keys):
        if name in _DECLARED:
            raise AssertionError(f"option {name!r} is declared twice")
    for name in (key, *old_keys):
        _DECLARED[name] = option
    return option


def declared() -> Iterator[Option[Any]]:
    """Return every declared option once, by key; only imported modules have declared theirs."""
    return (option for name, option in sorted(_DECLARED.items()) if name == option.key)


def check_options(
    given: Mapping[str, str], stored: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse unknown keys of ours, and values that are no text; tell of keys without effect.

    Those are told once, and a warning is given of slips.
    ``stored`` are the properties of the table, if there is one: to repeat them is no wish.
    """
    _check_mapping(given)
    _check_keys(key for key, value in given.items() if stored.get(key) != value)
    for key, value in given.items():
        _check_text(key, value)


def check_values(given: Mapping[str, str]) -> None:
    """Refuse values that a known option does not allow, whoever is going to read it."""
    for key, value in given.items():
        option = _DECLARED.get(key)
        if option is not None:
            option.read({key: value})


def check_properties(given: Iterable[str]) -> None:
    """Do as ``check_options`` for keys that are to be stored with a table."""
    _check_keys(
        key for key in given if key not in PROPERTIES and not key.startswith(PROPERTY_PREFIXES)
    )


def _check_mapping(given: object) -> None:
    """Refuse what callers without a type checker take for options."""
    if not isinstance(given, Mapping):
        raise InvalidOption(
            f"options={given!r} are no options by name.",
            next_step='Give texts by name: {"lakewright.undo.window": "7d"}, say.',
            value=given,
        )
    for key in given:
        if not isinstance(key, str):
            raise InvalidOption(
                f"{key!r} is no name of an option.",
                next_step="Names of options are texts.",
                key=key,
            )


def _check_text(key: str, value: object) -> None:
    if isinstance(value, str):
        return
    option = _DECLARED.get(key)
    allowed = f" Allowed: {option.allowed}." if option else ""
    raise InvalidOption(
        f"{key}: {value!r} is no text.",
        next_step=f"Options are texts.{allowed}",
        key=key,
        value=value,
    )


_TOLD: set[str] = set()
"""Keys that were told of already; a stream would repeat it with every batch."""


def _check_keys(keys: Iterable[str]) -> None:
    unheard = []
    for key in keys:
        if key in _DECLARED or key in OPTIONS:
            continue
        near = get_close_matches(key, OPTIONS, 1, _SLIP)
        if key.startswith(_OWN) or (near and near[0].startswith(_OWN)):
            near = get_close_matches(key, OPTIONS, 1)
            raise InvalidOption(
                f"there is no option {key!r}.",
                next_step=f"Did you mean {near[0]!r}?" if near else "See the options page.",
                key=key,
            )
        if key not in _TOLD:
            _TOLD.add(key)
            unheard.append(f"{key} (did you mean {near[0]}?)" if near else key)
            if near:
                # A library's log is silent until somebody listens; this is for those who do not.
                slip = f"the option {key} has no effect here; did you mean {near[0]}?"
                warnings.warn(slip, UserWarning, stacklevel=_calls_of_ours())
    if unheard:
        log.warning(
            "options that have no effect here: %s", ", ".join(unheard), extra=facts(keys=unheard)
        )


def _calls_of_ours() -> int:
    """Return how many calls lie between a warning and the line of the user that it is about."""
    package = __name__.partition(".")[0]
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(
        f"{package}."
    ):
        frame, depth = frame.f_back, depth + 1
    return depth


def parse_count(text: str) -> int:
    """Read a whole number from 0 on."""
    return _least(text, 0)


def parse_positive(text: str) -> int:
    """Read a whole number from 1 on."""
    return _least(text, 1)


def _least(text: str, least: int) -> int:
    value = int(text)
    if value < least:
        raise ValueError(text)
    return value


def parse_bool(text: str) -> bool:
    """Read ``true`` or ``false`` in any case; anything else is a ValueError."""
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError(text)


def parse_names(text: str) -> tuple[str, ...]:
    """Read a comma list of names; empty text is the empty tuple."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def reference(options: Iterable[Option[Any]]) -> str:
    """Render options as a Markdown table for the reference page."""
    rows = [
        f"| `{o.key}` | {o.allowed} | `{o.default}` | {o.doc} | "
        f"{', '.join(f'`{k}`' for k in o.old_keys) or '-'} | {o.since} |"
        for o in options
    ]
    head = ["| Key | Allowed | Default | Meaning | Also accepted as | Since |", "|" + " --- |" * 6]
    return "\n".join([*head, *rows])
