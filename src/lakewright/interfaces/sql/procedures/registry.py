"""The registry of procedures: declared with typed parameters, called by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lakewright.model.errors import Invalid, NotFound
from lakewright.model.expression.types import Value
from lakewright.model.shown import Shown

if TYPE_CHECKING:
    from lakewright.api.lake import Lake


class Kind(StrEnum):
    """The types of parameters."""

    TEXT = "text"
    WHOLE = "a whole number"
    NUMBER = "a number"
    FLAG = "true or false"


class _Required:
    def __repr__(self) -> str:
        return "required"


#: The default of a parameter that has none.
REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; ``aliases`` are other names that it is accepted under.

    A number is at least ``least``, where that is given.
    """

    name: str
    kind: Kind = Kind.TEXT
    default: Value | _Required = REQUIRED
    doc: str = ""
    aliases: tuple[str, ...] = ()
    least: int | None = None

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return isinstance(self.default, _Required)

    def take(self, value: Value, procedure: str) -> Value:
        """Return the value in the parameter's type; ``Invalid`` names both."""
        fitted = _fitted(self.kind, value)
        if fitted is None and not (value is None and not self.required):
            width = " of 64 bits" if isinstance(value, int) and self.kind is Kind.WHOLE else ""
            raise Invalid(
                f"{procedure}: {self.name} is {self.kind}{width}, not {value!r}.",
                next_step=f"Write {self.name} => {_EXAMPLES[self.kind]}.",
                parameter=self.name,
                value=value,
            )
        if self.least is not None and isinstance(fitted, int) and fitted < self.least:
            raise Invalid(
                f"{procedure}: {self.name} is {fitted}.",
                next_step=f"Give {self.least} or more.",
                parameter=self.name,
                value=fitted,
            )
        return fitted


_EXAMPLES = {Kind.TEXT: "'text'", Kind.WHOLE: "10", Kind.NUMBER: "0.5", Kind.FLAG: "true"}


_LARGE = 1 << 63


def _fitted(kind: Kind, value: Value) -> Value:
    match kind:
        case Kind.TEXT:
            return value if isinstance(value, str) else None
        case Kind.FLAG:
            words = {"true": True, "false": False}
            return value if isinstance(value, bool) else words.get(str(value).lower())
        case Kind.WHOLE:
            if isinstance(value, str) and value.lstrip("-").isdigit():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int):
                return None
            return value if -_LARGE <= value < _LARGE else None
        case Kind.NUMBER:
            try:
                return None if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                return None


Arguments: TypeAlias = Mapping[str, Value]
Rows: TypeAlias = Iterable[Mapping[str, object]]
Body: TypeAlias = "Callable[[Lake, Arguments], Rows]"
#: Says what a call would do; None where there is nothing to do.
Plan: TypeAlias = Callable[["Lake", Arguments], Iterable[Shown | None]]

#: With it a call changes nothing: its answer is what it would do, line by line.
DRY_RUN = Parameter("dry_run", Kind.FLAG, False, doc="Answer with what would be done, and stop.")
_PLANNED = pa.schema([("plan", pa.string())])


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: what it takes, the columns of its answer, and what it does."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    returns: pa.Schema
    body: Body
    aliases: tuple[str, ...] = ()
    writes: bool = False
    plan: Plan | None = None

    def call(
        self, lake: "Lake", positional: Sequence[Value], named: Mapping[str, Value]
    ) -> tuple[pa.Schema, Rows]:
        """Carry out a call, and return the columns and the rows of its answer."""
        arguments = self.arguments(positional, named)
        if self.plan is not None and arguments[DRY_RUN.name]:
            return _PLANNED, _told(self.plan(lake, arguments))
        return self.returns, self.body(lake, arguments)

    def arguments(self, positional: Sequence[Value], named: Mapping[str, Value]) -> Arguments:
        """Match what a call gives with the parameters; ``Invalid`` says what does not fit."""
        if len(positional) > len(self.parameters):
            raise Invalid(
                f"{self.name} takes {len(self.parameters)} arguments, not {len(positional)}.",
                next_step=f"Write {self.usage()}.",
            )
        given: dict[str, Value] = {}
        for parameter, value in zip(self.parameters, positional, strict=False):
            given[parameter.name] = parameter.take(value, self.name)
        for name, value in named.items():
            parameter = self._parameter(name)
            if parameter.name in given:
                raise Invalid(
                    f"{self.name}: {parameter.name} is given twice.",
                    next_step="Give it once, by name or by its place.",
                )
            given[parameter.name] = parameter.take(value, self.name)
        missing = [p.name for p in self.parameters if p.required and p.name not in given]
        if missing:
            raise Invalid(
                f"{self.name} needs {', '.join(missing)}.", next_step=f"Write {self.usage()}."
            )
        rest = {p.name: p.default for p in self.parameters if not isinstance(p.default, _Required)}
        return {**rest, **given}

    def _parameter(self, name: str) -> Parameter:
        by_name = {n.lower(): p for p in self.parameters for n in (p.name, *p.aliases)}
        found = by_name.get(name.lower())
        if found is None:
            raise Invalid(
                f"{self.name} has no parameter {name!r}.",
                next_step=f"{_nearest(name.lower(), by_name)}Write {self.usage()}.",
                parameter=name,
            )
        return found

    def usage(self) -> str:
        """Return the call with its parameters, those in brackets optional."""
        shown = [
            f"{p.name} => {_EXAMPLES[p.kind]}"
            if p.required
            else f"[{p.name} => {_shown(p.default)}]"
            for p in self.parameters
        ]
        return f"CALL {self.name}({', '.join(shown)})"


def _told(plans: Iterable[Shown | None]) -> Rows:
    empty = True
    for plan in plans:
        for line in () if plan is None else plan.lines(None):
            empty = False
            yield {"plan": line}
    if empty:
        yield {"plan": "nothing to do"}


def _shown(default: Value | _Required) -> str:
    match default:
        case None:
            return "NULL"
        case bool():
            return str(default).lower()
        case _:
            return repr(default)


@dataclass(slots=True)
class Registry:
    """Procedures by name."""

    _known: dict[str, Procedure] = field(default_factory=dict)

    def add(self, procedure: Procedure) -> None:
        """Add a procedure; a second one of a name is a bug."""
        for name in (procedure.name, *procedure.aliases):
            if name in self._known:
                raise AssertionError(f"procedure {name!r} is declared twice")
            self._known[name] = procedure

    def find(self, name: str) -> Procedure:
        """Return a procedure; ``NotFound`` names the nearest ones."""
        found = self._known.get(name.lower())
        if found is None:
            raise NotFound(
                f"no procedure {name!r}.",
                next_step=f"{_nearest(name.lower(), self._known)}SHOW PROCEDURES lists all.",
                procedure=name,
            )
        return found

    def __iter__(self) -> Iterator[Procedure]:
        return (p for name, p in sorted(self._known.items()) if name == p.name)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"Nearest: {', '.join(near)}. " if near else ""


#: The procedures of this program.
REGISTRY = Registry()


def procedure(
    name: str,
    returns: pa.Schema,
    *parameters: Parameter,
    aliases: tuple[str, ...] = (),
    writes: bool = False,
    plan: Plan | None = None,
) -> Callable[[Body], Body]:
    """Declare a function as a procedure; its docstring is what SHOW PROCEDURES says of it.

    One with a ``plan`` has the parameter ``dry_run`` as its last.
    """
    taken = parameters if plan is None else (*parameters, DRY_RUN)

    def declare(body: Body) -> Body:
        doc = (body.__doc__ or "").strip().partition("\n")[0]
        REGISTRY.add(Procedure(name, doc, taken, returns, body, aliases, writes, plan))
        return body

    return declare
