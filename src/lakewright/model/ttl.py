"""TTL policies: which partitions are kept how long, in the words of the specification.

A partition spec is a path with a name for every level: ``user_id=1/`` for one user, ``user_id=*/``
for each of them, ``user_id=*/dt=2026-11-01/`` further down, ``/`` for the table itself. Levels at
the end may be left out. Values are written as they stand in the table's paths; a value that is a
star is written ``\\*``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.model.errors import Invalid

#: The largest value: that of a long of Java.
LARGEST = (1 << 63) - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_STARS = re.compile(r"\\+\*")

SPEC, POLICY, VALUE = "partitionSpec", "policy", "policyValue"


class PolicyKind(StrEnum):
    """What is kept: partitions by their age, some of them by number, or some by their bytes."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_COUNT = "KEEP_BY_COUNT"
    KEEP_BY_SIZE = "KEEP_BY_SIZE"
    KEEP_BY_EVENT_TIME = "KEEP_BY_EVENT_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"

    @property
    def ranks(self) -> bool:
        """Whether partitions below one parent are set against each other."""
        return self is PolicyKind.KEEP_BY_COUNT or self is PolicyKind.KEEP_BY_SIZE

    @property
    def unit(self) -> str:
        """What the policy's value counts."""
        return _UNITS.get(self, "days")

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings that a policy of this kind may have."""
        return _EVENT_SETTINGS if self is PolicyKind.KEEP_BY_EVENT_TIME else ()


_UNITS = {PolicyKind.KEEP_BY_COUNT: "partitions", PolicyKind.KEEP_BY_SIZE: "bytes"}
_EVENT_SETTINGS = ("format", "zone", "reference", "segment", "nulls")


@dataclass(frozen=True, slots=True)
class TtlPolicy:
    """One policy: ``value`` days, partitions or bytes are kept of what ``spec`` names.

    ``settings`` are those of KEEP_BY_EVENT_TIME: ``format`` (Java's pattern, with ``/`` between
    path segments), ``zone``, ``reference`` (``start`` or ``end`` of the period that a partition
    stands for), ``segment`` (the number, from 0, of the first path segment that is read) and
    ``nulls`` (``keep`` or ``delete`` partitions without a time).
    """

    spec: str
    kind: PolicyKind
    value: int
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 1 <= self.value <= LARGEST:
            raise Invalid(
                f"{self.spec} {self.kind}: {self.value} {self.kind.unit} cannot be kept.",
                next_step=f"Give a whole number from 1 to {LARGEST}; drop the policy to keep all.",
                spec=self.spec,
                value=self.value,
            )
        if unknown := sorted(set(self.settings) - set(self.kind.settings)):
            known = ", ".join(self.kind.settings) or "none"
            raise Invalid(
                f"{self.spec}: {self.kind} has no setting {', '.join(map(repr, unknown))}.",
                next_step=f"Known: {known}.",
                spec=self.spec,
                settings=unknown,
            )

    @staticmethod
    def of(
        spec: str,
        kind: str,
        value: int | str,
        settings: Mapping[str, str] | None = None,
    ) -> "TtlPolicy":
        """Make a policy of what a person wrote; the error names what is wrong with it."""
        if not isinstance(spec, str):
            raise Invalid(
                f"spec={spec!r} is no text.",
                next_step="Write user_id=1/, user_id=*/ for each, or / for the whole table.",
                spec=spec,
            )
        found = _settings(spec, {} if settings is None else settings)
        return TtlPolicy(spec, _kind(spec, kind), _value(spec, value), found)

    @property
    def kept(self) -> str:
        """What is kept, in words: ``30 days``."""
        unit = self.kind.unit
        return f"{self.value} {unit.removesuffix('s') if self.value == 1 else unit}"

    def __str__(self) -> str:
        more = "".join(f" {name}={value}" for name, value in self.settings.items())
        return f"{self.spec} {self.kind} {self.value}{more}"

    def to_members(self) -> dict[str, object]:
        """Return the members of the policy's JSON object, those of the specification first."""
        return {SPEC: self.spec, POLICY: str(self.kind), VALUE: self.value, **self.settings}

    @staticmethod
    def from_members(members: object) -> "TtlPolicy":
        """Read the members of a JSON object, which a person may have written."""
        if not isinstance(members, Mapping):
            raise Invalid(
                f"{json.dumps(members)} is no policy.",
                next_step=f"A policy is a JSON object with {SPEC}, {POLICY} and {VALUE}.",
            )
        spec, kind, value = (members.get(name) for name in (SPEC, POLICY, VALUE))
        text = json.dumps(members, ensure_ascii=False)
        if not isinstance(spec, str) or not isinstance(kind, str) or value is None:
            raise Invalid(
                f"{text} is no policy.",
                next_step=f"{SPEC} and {POLICY} are texts, {VALUE} is a whole number.",
            )
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise Invalid(
                f"{text}: {VALUE} is no whole number.", next_step="Write it without a fraction."
            )
        settings = {k: v for k, v in members.items() if k not in (SPEC, POLICY, VALUE)}
        return TtlPolicy.of(spec, kind, value, settings)


def _settings(spec: str, settings: object) -> dict[str, str]:
    """Return settings as texts; a whole number may be written as one."""
    if not isinstance(settings, Mapping):
        raise Invalid(
            f"{spec}: settings={settings!r} are no settings by name.",
            next_step='Give texts by name: {"format": "yyyy-MM-dd"}, say.',
            spec=spec,
        )
    for name, value in settings.items():
        if not isinstance(name, str):
            raise Invalid(
                f"{spec}: {name!r} is no name of a setting.",
                next_step="Names of settings are texts.",
                spec=spec,
            )
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise Invalid(
                f"{spec}: {name}={value!r} is no text.",
                next_step="Put it between quotes.",
                spec=spec,
                setting=name,
            )
    return {name: str(value) for name, value in settings.items()}


def _kind(spec: str, text: str) -> PolicyKind:
    try:
        return PolicyKind(text.strip().upper())
    except ValueError as cause:
        raise Invalid(
            f"{spec}: there is no policy {text!r}.",
            next_step=f"Known: {', '.join(PolicyKind)}.",
            spec=spec,
            policy=text,
        ) from cause


def _value(spec: str, value: int | str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value).strip()
    if not _WHOLE.fullmatch(text):
        raise Invalid(
            f"{spec}: {value!r} is no whole number.",
            next_step="Give the days, partitions or bytes to keep, e.g. 30.",
            spec=spec,
            value=value,
        )
    return int(text)


@dataclass(frozen=True, slots=True)
class SpecLevel:
    """One level of a spec: a column, and the text of its value; None for any value."""

    column: str
    text: str | None

    def __str__(self) -> str:
        if self.text is None:
            return f"{self.column}=*"
        escaped = f"\\{self.text}" if self.text == "*" or _STARS.fullmatch(self.text) else self.text
        return f"{self.column}={escaped}"


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The first levels of a partition's path, with values or open; no level is the table."""

    levels: tuple[SpecLevel, ...]

    def __str__(self) -> str:
        return "".join(f"{level}/" for level in self.levels) or "/"

    @property
    def is_default(self) -> bool:
        """Whether no level has a value: what holds where nothing else is said."""
        return all(level.text is None for level in self.levels)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its levels."""
        return tuple(level.column for level in self.levels)

    @staticmethod
    def parse(text: str, columns: Sequence[str], slashed: Sequence[str] = ()) -> "PartitionSpec":
        """Read a spec for a table partitioned by ``columns``.

        Values of the columns in ``slashed`` may hold a ``/``; a level ends where the next one
        is named.
        """
        if not columns:
            raise Invalid(
                f"{text!r}: the table has no partitions.",
                next_step="TTL policies are for partitioned tables.",
                spec=text,
            )
        rest = _body(text)
        if rest is None:
            raise _bad(text, columns, "it is empty")
        levels: list[SpecLevel] = []
        while rest:
            if len(levels) == len(columns):
                raise _bad(text, columns, f"{rest!r} is beyond the last partition column")
            column = columns[len(levels)]
            if not rest.startswith(f"{column}="):
                raise _bad(text, columns, f"{column}= is expected at {rest!r}")
            value, rest = _cut(rest[len(column) + 1 :], columns[len(levels) + 1 :], column, slashed)
            if not value:
                raise _bad(text, columns, f"{column} has no value")
            levels.append(SpecLevel(column, _read(value)))
        return PartitionSpec(tuple(levels))


def _body(text: str) -> str | None:
    """Leave out the last slash and blanks around; blanks of a value stay."""
    bare = text.strip()
    return bare[:-1] if bare.endswith("/") else text.lstrip() or None


def _cut(
    rest: str, following: Sequence[str], column: str, slashed: Sequence[str]
) -> tuple[str, str]:
    """Cut the value of a level off; what follows belongs to the next."""
    if column not in slashed:
        value, _, after = rest.partition("/")
        return value, after
    if following:
        value, mark, after = rest.partition(f"/{following[0]}=")
        return value, f"{following[0]}={after}" if mark else ""
    return rest, ""


def _read(value: str) -> str | None:
    if value == "*":
        return None
    return value[1:] if _STARS.fullmatch(value) else value


def _bad(text: str, columns: Sequence[str], why: str) -> Invalid:
    form = "".join(f"{column}=…/" for column in columns)
    return Invalid(
        f"{text!r} is no partition spec of this table: {why}.",
        next_step=f"Write {form} with values or * (levels at the end may be left out), or / for "
        "the whole table.",
        spec=text,
        columns=list(columns),
    )
