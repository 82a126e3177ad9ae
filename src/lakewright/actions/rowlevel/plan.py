"""Planning an update or a merge: names, types and rules are checked before any row is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright.actions.rowlevel.assign import Assigned, assign
from lakewright.actions.rowlevel.clauses import Act, Clause
from lakewright.actions.rowlevel.names import (
    Side,
    resolved,
    source_side,
    target_name,
    target_side,
    unknown_column,
)
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.expression.analyse import conjunction, conjuncts, references
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import (
    BoundCast,
    BoundComparison,
    BoundExpression,
    BoundLiteral,
    BoundReference,
)
from lakewright.model.expression.nodes import Comparator, Expression, Reference
from lakewright.model.expression.types import is_numeric
from lakewright.model.schema import Field, Struct

Pair = tuple[BoundExpression, BoundExpression]


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a table bears on changing its rows.

    ``identity`` are columns of Hudi's own that must travel with a row, because no column of the
    table tells which row it is: its keys were made by a writer. With ``global_keys`` the index
    finds a row in whichever partition it lies, and moves it.
    """

    columns: Struct
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    global_keys: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A clause, bound: ``values`` has one entry for each column of the table, in its order."""

    act: Act
    where: BoundExpression | None = None
    values: tuple[Assigned, ...] = ()
    #: Whether values may change which partition the row belongs to.
    moves: bool = False


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A merge that can be run.

    Rows match where every pair is equal and ``residual`` holds. ``moot`` says that rows of the
    target without a match do not matter, so that ``target_only`` (conditions on the target
    alone) may leave them out before the join.
    """

    rules: Rules
    source: Struct
    pairs: tuple[Pair, ...]
    residual: BoundExpression | None
    target_only: tuple[BoundExpression, ...]
    matched: tuple[Step, ...]
    not_matched: tuple[Step, ...]
    by_source: tuple[Step, ...]

    @property
    def moot(self) -> bool:
        """Whether target rows without a match are left alone."""
        return not any(step.act is not Act.IGNORE for step in self.by_source)


def plan_update(rules: Rules, values: Mapping[str, Expression]) -> Step:
    """Bind the SET of an update."""
    side = target_side(rules.columns)
    planner = _Planner(rules, (), (side,))
    return planner.step(Clause(Act.UPDATE, None, values), (side,))


def plan_merge(
    rules: Rules, source: Struct, on: Expression, clauses: Mapping[str, Sequence[Clause]]
) -> MergePlan:
    """Bind a merge; ``clauses`` are by the names of ``merge``'s arguments."""
    target, other = target_side(rules.columns), source_side(source)
    both = (target, other)
    condition = bind(resolved(on, both), _laid_out(both))
    pairs, residual, target_only = _split(condition)
    planner = _Planner(rules, pairs, both)
    plan = MergePlan(
        rules,
        source,
        pairs,
        conjunction(residual),
        tuple(target_only),
        planner.steps(clauses.get("when_matched", ()), both),
        planner.steps(clauses.get("when_not_matched", ()), (other,)),
        planner.steps(clauses.get("when_not_matched_by_source", ()), (target,)),
    )
    if all(s.act is Act.IGNORE for s in (*plan.matched, *plan.not_matched, *plan.by_source)):
        raise Invalid(
            "the merge changes nothing.",
            next_step="Give when_matched, when_not_matched or when_not_matched_by_source.",
        )
    return plan


def _laid_out(sides: Sequence[Side]) -> Struct:
    return Struct(tuple(field for side in sides for field in side.laid_out()))


def _split(
    condition: BoundExpression,
) -> tuple[tuple[Pair, ...], list[BoundExpression], list[BoundExpression]]:
    """Take equalities of the two sides out of a join condition."""
    pairs: list[Pair] = []
    residual: list[BoundExpression] = []
    target_only: list[BoundExpression] = []
    for part in conjuncts(condition):
        match part:
            case BoundComparison(Comparator.EQ, left, right) if sides := _sides(left, right):
                pairs.append(sides)
                continue
            case BoundLiteral(True):
                continue
            case _:
                residual.append(part)
        if _side_of(part) == "t":
            target_only.append(part)
    return tuple(pairs), residual, target_only


def _sides(left: BoundExpression, right: BoundExpression) -> Pair | None:
    match _side_of(left), _side_of(right):
        case "t", "s":
            return left, right
        case "s", "t":
            return right, left
        case _:
            return None


def _side_of(bound: BoundExpression) -> str | None:
    """Return the one side that an expression looks at; None where it is none or both."""
    found = {path[0].partition(".")[0] for path in references(bound)}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Planner:
    rules: Rules
    pairs: tuple[Pair, ...]
    sides: tuple[Side, ...]

    def steps(self, clauses: Sequence[Clause], visible: Sequence[Side]) -> tuple[Step, ...]:
        return tuple(self.step(clause, visible) for clause in clauses)

    def step(self, clause: Clause, visible: Sequence[Side]) -> Step:
        schema = _laid_out(visible)
        where = clause.where
        condition = None if where is None else bind(resolved(where, visible), schema)
        if clause.act in (Act.DELETE, Act.IGNORE):
            return Step(clause.act, condition)
        given = self._given(clause)
        values = [
            assign(column, resolved(given[column.name], visible), schema)
            if column.name in given
            else self._default(column, clause.act)
            for column in self.rules.columns
        ]
        if clause.act is Act.UPDATE:
            self._check_keys(values, given)
        moving = [
            a.column.name
            for a in values
            if a.column.name in self.rules.partition_by and not _is_own(a)
        ]
        moves = clause.act is Act.UPDATE and bool(moving) and not self.rules.global_keys
        if moves and self.rules.identity:
            raise Unsupported(
                f"column {moving[0]} chooses the partition, and the keys of this table were made "
                "by its writers, so that a row cannot be moved.",
                next_step="Delete the rows and insert them anew.",
                column=moving[0],
            )
        return Step(clause.act, condition, tuple(values), moves)

    def _given(self, clause: Clause) -> dict[str, Expression]:
        """Return the columns that a clause sets, under the names that the table has."""
        columns = self.rules.columns
        if clause.values is None:
            other = self.sides[-1]
            found = {c.name: other.find(c.name) for c in columns}
            given: dict[str, Expression] = {
                name: Reference(("s", match)) for name, match in found.items() if match is not None
            }
        else:
            given = {}
            for written, value in clause.values.items():
                name = self._target_column(written)
                if name in given:
                    raise Invalid(
                        f"column {name} is set twice.", next_step="Give it one value.", column=name
                    )
                given[name] = value
        if clause.act is Act.INSERT:
            self._check_inserted(given)
        return given

    def _target_column(self, written: str) -> str:
        target = self.sides[0]
        tries = [written]
        for alias in target.aliases:
            if written.lower().startswith(f"{alias}."):
                tries.append(written[len(alias) + 1 :])
        for name in tries:
            found = target.find(name)
            if found is not None:
                return found
        raise unknown_column(written, list(self.rules.columns.names))

    def _default(self, column: Field, act: Act) -> Assigned:
        if act is Act.UPDATE:
            own = BoundReference((target_name(column.name),), column.type, column.nullable)
            return Assigned(column, own)
        return Assigned(column, BoundLiteral(None, column.type))

    def _check_inserted(self, given: Mapping[str, Expression]) -> None:
        missing = [
            c.name
            for c in self.rules.columns
            if c.name not in given and (c.name in self.rules.key or not c.nullable)
        ]
        if missing:
            raise Invalid(
                f"an inserted row needs {', '.join(missing)}.",
                next_step="Give values for these columns, or add them to the source.",
                columns=missing,
            )

    def _check_keys(self, values: Sequence[Assigned], given: Mapping[str, Expression]) -> None:
        """Refuse a SET that may change a record key; the key that matched is no change."""
        same = {(left, _core(right)) for left, right in map(_plain_pair, self.pairs) if left}
        for assigned in values:
            name = assigned.column.name
            if name not in self.rules.key or name not in given or _is_own(assigned):
                continue
            if (target_name(name), _core(assigned.before or assigned.value)) not in same:
                raise Invalid(
                    f"column {name} belongs to the record key, which an update cannot change.",
                    next_step="Leave it out of SET; to give a row another key, delete it and "
                    "insert it anew.",
                    column=name,
                )


def _plain_pair(pair: Pair) -> tuple[str | None, BoundExpression]:
    """Return the target column that a pair compares as it is, and what it is compared with."""
    left, right = pair
    core = _core(left)
    exact = core is left or is_numeric(core.type)  # a text that reads as a number is not one
    plain = isinstance(core, BoundReference) and len(core.path) == 1 and exact
    return (core.path[0] if plain and isinstance(core, BoundReference) else None), right


def _core(bound: BoundExpression) -> BoundExpression:
    return bound.child if isinstance(bound, BoundCast) else bound


def _is_own(assigned: Assigned) -> bool:
    value = assigned.value
    return isinstance(value, BoundReference) and value.path == (target_name(assigned.column.name),)
