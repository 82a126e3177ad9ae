"""Whose column is it: the target's or the source's.

Both sides of a merge are laid side by side in one row, under names that tell them apart
(``t.id``, ``s.id``); an expression as written is renamed into them before it is bound.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import reduce
from typing import TypeVar

from lakewright.model.errors import UnknownColumn
from lakewright.model.expression.nodes import And, Expression, Or, Reference, chain
from lakewright.model.schema import Struct

Path = tuple[str, ...]
TARGET, SOURCE = "t", "s"
Node = TypeVar("Node")


def target_name(column: str) -> str:
    """Return the name of a target column in joined rows."""
    return f"{TARGET}.{column}"


def source_name(column: str) -> str:
    """Return the name of a source column in joined rows."""
    return f"{SOURCE}.{column}"


@dataclass(frozen=True, slots=True)
class Side:
    """One side: the prefix of its columns, the names it goes by, and what it holds."""

    prefix: str
    aliases: tuple[str, ...]
    schema: Struct

    def laid_out(self) -> Struct:
        """Return the columns under the names that they have in joined rows."""
        return Struct(tuple(replace(f, name=f"{self.prefix}.{f.name}") for f in self.schema))

    def find(self, name: str) -> str | None:
        """Return the column of this name as the schema spells it; case matters only in doubt."""
        if name in self.schema:
            return name
        alike = [n for n in self.schema.names if n.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None


def target_side(schema: Struct) -> Side:
    """Return the side of the table that is changed, ``t`` or ``target``."""
    return Side(TARGET, (TARGET, "target"), schema)


def source_side(schema: Struct) -> Side:
    """Return the side that the changes come from, ``s`` or ``source``."""
    return Side(SOURCE, (SOURCE, "source"), schema)


def resolved(expression: Expression, sides: Iterable[Side]) -> Expression:
    """Return the expression with every column under its name in joined rows.

    A name without a side is looked for in all sides; ``UnknownColumn`` where it is in none of
    them or in more than one.
    """
    every = tuple(sides)
    return with_references(expression, lambda found: Reference(_resolve(found.path, every)))


def own_names(expression: Expression) -> Expression:
    """Return an expression over joined rows as one over the rows of the target alone."""

    def bare(found: Reference) -> Reference:
        return Reference((found.path[0].removeprefix(f"{TARGET}."), *found.path[1:]))

    return with_references(expression, bare)


def _resolve(path: Path, sides: tuple[Side, ...]) -> Path:
    for side in sides:
        if len(path) > 1 and path[0].lower() in side.aliases:
            found = side.find(path[1])
            if found is not None:
                return (f"{side.prefix}.{found}", *path[2:])
    hits = [(side, found) for side in sides if (found := side.find(path[0])) is not None]
    if len(hits) == 1:
        side, found = hits[0]
        return (f"{side.prefix}.{found}", *path[1:])
    written = ".".join(path)
    if hits:
        choices = " or ".join(f"{side.prefix}.{found}" for side, found in hits)
        raise UnknownColumn(
            f"column {written} is in the target and in the source.",
            next_step=f"Write {choices}.",
            column=written,
        )
    known = [f"{side.prefix}.{name}" for side in sides for name in side.schema.names]
    raise unknown_column(written, known)


def unknown_column(written: str, known: list[str]) -> UnknownColumn:
    """Return the error for a column that is not there, with the nearest ones that are."""
    by_text = {form: name for name in known for form in (name, name.partition(".")[2]) if form}
    near = get_close_matches(written, by_text, n=3)
    likely = [by_text[form] for form in near]
    hint = f"Nearest: {', '.join(dict.fromkeys(likely))}. " if likely else ""
    return UnknownColumn(
        f"no column {written!r}.",
        next_step=f"{hint}Known: {', '.join(known)}.",
        column=written,
        known=known,
    )


def with_references(node: Node, rename: Callable[[Reference], Reference]) -> Node:
    """Return a tree with its references replaced; tuples of nodes are gone through too."""
    if isinstance(node, Reference):
        return rename(node)  # type: ignore[return-value]
    if isinstance(node, tuple):
        return tuple(with_references(part, rename) for part in node)  # type: ignore[return-value]
    if isinstance(node, And | Or):
        # Chains may be long, and lean to the left.
        kind: type[And | Or] = And if isinstance(node, And) else Or
        return reduce(kind, [with_references(link, rename) for link in chain(node, kind)])  # type: ignore[return-value]
    if isinstance(node, Expression):
        parts = {f.name: with_references(getattr(node, f.name), rename) for f in fields(node)}  # type: ignore[arg-type]
        return type(node)(**parts)
    return node
