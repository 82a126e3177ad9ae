"""The TTL policies of a table, kept in its properties under the names of the specification.

The first policy without any value is the default and has three properties of its own; the others
lie in a JSON array, in the order in which they were added. So does a default that needs more than
three properties can say. What a person wrote there is obeyed, and a mistake in it is named.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.properties import PROPERTIES_PATH, load_properties, update_properties
from lakewright.lifecycle.ttl.bound import BoundPolicy, Governance, bind, check_unambiguous
from lakewright.lifecycle.ttl.levels import Levels
from lakewright.model.errors import Corrupt, Invalid, NotFound
from lakewright.model.ttl import PartitionSpec, SpecLevel, TtlPolicy
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.locks.choose import open_lock

DEFAULT_POLICY = "hoodie.partition.ttl.management.default.policy"
DEFAULT_FIELDS = "hoodie.partition.ttl.management.default.fields"
DEFAULT_VALUE = "hoodie.partition.ttl.management.default.policy.value"
POLICIES = "hoodie.partition.ttl.policies"
KEYS = (DEFAULT_POLICY, DEFAULT_FIELDS, DEFAULT_VALUE, POLICIES)

_UNSET = "Mend it, or remove it with ALTER TABLE … UNSET TBLPROPERTIES."


@dataclass(frozen=True, slots=True)
class PolicyAdded:
    """A policy that was stored; ``replaced`` is the one that its spec had before.

    ``policies`` are all that the table has now.
    """

    policy: TtlPolicy
    replaced: TtlPolicy | None
    policies: tuple[TtlPolicy, ...]

    def __str__(self) -> str:
        if self.replaced is None:
            return f"added {self.policy}"
        if self.replaced == self.policy:
            return f"{self.policy} was there already"
        return f"{self.policy} replaces {self.replaced}"


def levels_of(state: TableState) -> Levels:
    """Return the levels of a table's partitions, typed by its schema."""
    return Levels.of(state.config, table_schema(state))


def table_policies(state: TableState) -> tuple[TtlPolicy, ...]:
    """Return the policies of a table, as it was opened; ``Corrupt`` names a bad one."""
    return read_policies(state.config.properties, levels_of(state))


def read_policies(properties: Mapping[str, str], levels: Levels) -> tuple[TtlPolicy, ...]:
    """Read the policies among properties: the default first, the others as they are stored."""
    bounds = _bound(properties, levels)
    try:
        check_unambiguous(bounds)
    except Invalid as cause:
        raise _bad(POLICIES, cause) from cause
    return tuple(bound.policy for bound in bounds)


def policy_properties(policies: Sequence[TtlPolicy], levels: Levels) -> dict[str, str | None]:
    """Return the properties that hold these policies; None for those that are not needed."""
    default = next((one for one in policies if _fits_default(one, levels)), None)
    rest = [one.to_members() for one in policies if one is not default]
    changes: dict[str, str | None] = dict.fromkeys(KEYS)
    if default is not None:
        changes[DEFAULT_POLICY] = str(default.kind)
        changes[DEFAULT_FIELDS] = ",".join(levels.parse(default.spec).columns)
        changes[DEFAULT_VALUE] = str(default.value)
    if rest:
        changes[POLICIES] = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    return changes


def shown_order(policies: Iterable[TtlPolicy], levels: Levels) -> list[TtlPolicy]:
    """Return policies as they are shown: those without values first, then by their values."""
    bounds = [bind(policy, levels) for policy in policies]
    bounds.sort(key=lambda b: (len(b.shape) > 0, [k or (-1, "") for k in b.keys]))
    return [bound.policy for bound in bounds]


def add_policy(
    state: TableState, policy: TtlPolicy, options: Mapping[str, str] | None = None
) -> PolicyAdded:
    """Store a policy, in the place of the one that its spec has; ``Invalid`` says what is wrong.

    The properties are read, changed and written under the table's lock, so that policies which
    others add at the same time stay.
    """
    with open_lock(state.storage, _lock_options(state, options)).acquire():
        properties = load_properties(state.storage)
        levels = _levels(state, properties)
        added = _added(policy, properties, levels)
        if added.replaced != added.policy:
            _store(state, properties, added.policies, levels)
    return added


def preview_policy(state: TableState, policy: TtlPolicy) -> PolicyAdded:
    """Say what ``add_policy`` would store; nothing is. ``Invalid`` says what is wrong."""
    properties = load_properties(state.storage)
    return _added(policy, properties, _levels(state, properties))


def _added(policy: TtlPolicy, properties: Mapping[str, str], levels: Levels) -> PolicyAdded:
    new = bind(policy, levels)
    bounds = _bound(properties, levels)
    place = _place(new, bounds)
    replaced = bounds[place].policy if place is not None else None
    if place is None:
        bounds.append(new)
    else:
        bounds[place] = new
    check_unambiguous(bounds)
    return PolicyAdded(new.policy, replaced, tuple(bound.policy for bound in bounds))


def drop_policy(
    state: TableState,
    spec: str,
    options: Mapping[str, str] | None = None,
    *,
    dry_run: bool = False,
) -> TtlPolicy:
    """Remove the policy of a spec and return it; ``NotFound`` where it has none.

    It is ``Invalid`` to drop what decides between two others that meet. With ``dry_run`` nothing
    is removed.
    """
    with open_lock(state.storage, _lock_options(state, options)).acquire():
        properties = load_properties(state.storage)
        levels = _levels(state, properties)
        bounds = _bound(properties, levels)
        keys = _keys(spec, levels)
        place = next((i for i, bound in enumerate(bounds) if bound.keys == keys), None)
        if place is None:
            known = ", ".join(bound.policy.spec for bound in bounds) or "none"
            raise NotFound(
                f"no TTL policy for {spec}.", next_step=f"Specs with a policy: {known}.", spec=spec
            )
        before = {(a.keys, b.keys) for a, b in Governance(bounds).ambiguities()}
        dropped = bounds.pop(place)
        after = {(a.keys, b.keys) for a, b in Governance(bounds).ambiguities()}
        if after - before:
            check_unambiguous(bounds)
        if not dry_run:
            _store(state, properties, [bound.policy for bound in bounds], levels)
    return dropped.policy


def _lock_options(state: TableState, options: Mapping[str, str] | None) -> dict[str, str]:
    return {**state.storage.options, **state.config.properties, **(options or {})}


def _levels(state: TableState, properties: Mapping[str, str]) -> Levels:
    return Levels.of(TableConfig.of(properties), table_schema(state))


def _store(
    state: TableState,
    properties: Mapping[str, str],
    policies: Sequence[TtlPolicy],
    levels: Levels,
) -> None:
    wanted = policy_properties(policies, levels)
    changes = {key: value for key, value in wanted.items() if properties.get(key) != value}
    if changes:
        update_properties(state.storage, changes)


def _keys(spec: str, levels: Levels) -> tuple[object, ...]:
    parsed = levels.parse(spec)
    return tuple(
        None if one.text is None else level.key(levels.decode(one.text))
        for level, one in zip(levels.levels, parsed.levels, strict=False)
    )


def _place(new: BoundPolicy, bounds: Sequence[BoundPolicy]) -> int | None:
    return next((i for i, bound in enumerate(bounds) if bound.keys == new.keys), None)


def _fits_default(policy: TtlPolicy, levels: Levels) -> bool:
    return not policy.settings and levels.parse(policy.spec).is_default


def _bound(properties: Mapping[str, str], levels: Levels) -> list[BoundPolicy]:
    """Read and check each policy; whether they are ambiguous is not asked here."""
    bounds: list[BoundPolicy] = []
    seen: dict[tuple[object, ...], str] = {}
    for key, policy in _stored(properties, levels):
        try:
            bound = bind(policy, levels)
            if bound.keys in seen:
                raise Invalid(
                    f"{policy.spec} has two policies, the other is {seen[bound.keys]}.",
                    next_step="Keep one of them.",
                )
        except Invalid as cause:
            raise _bad(key, cause) from cause
        seen[bound.keys] = str(bound.policy)
        bounds.append(bound)
    return bounds


def _stored(properties: Mapping[str, str], levels: Levels) -> list[tuple[str, TtlPolicy]]:
    found = []
    default = _default(properties, levels)
    if default is not None:
        found.append((DEFAULT_POLICY, default))
    text = properties.get(POLICIES, "").strip()
    if not text:
        return found
    try:
        entries = json.loads(text, object_pairs_hook=_members)
        if not isinstance(entries, list):
            raise Invalid("it is no JSON array.", next_step=_UNSET)
        found += [(POLICIES, TtlPolicy.from_members(entry)) for entry in entries]
    except (ValueError, RecursionError) as cause:
        wrong = Invalid(f"it is no JSON: {cause}.", next_step=_UNSET)
        raise _bad(POLICIES, wrong) from cause
    except Invalid as cause:
        raise _bad(POLICIES, cause) from cause
    return found


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Invalid(f"a member of {json.dumps(members)} is there twice.", next_step=_UNSET)
    return members


def _default(properties: Mapping[str, str], levels: Levels) -> TtlPolicy | None:
    given = [key for key in (DEFAULT_POLICY, DEFAULT_FIELDS, DEFAULT_VALUE) if key in properties]
    if not given:
        return None
    for key in (DEFAULT_POLICY, DEFAULT_FIELDS, DEFAULT_VALUE):
        if key not in properties:
            wrong = Invalid(f"it is missing, and {given[0]} is there.", next_step=_UNSET)
            raise _bad(key, wrong)
    fields = [name.strip() for name in properties[DEFAULT_FIELDS].split(",") if name.strip()]
    names = levels.names[: len(fields)]
    if list(names) != fields:
        wrong = Invalid(
            f"{properties[DEFAULT_FIELDS]!r} are not the table's first partition columns.",
            next_step=f"They are {', '.join(levels.names) or 'none'}.",
        )
        raise _bad(DEFAULT_FIELDS, wrong)
    spec = str(PartitionSpec(tuple(SpecLevel(name, None) for name in names)))
    try:
        return TtlPolicy.of(spec, properties[DEFAULT_POLICY], properties[DEFAULT_VALUE])
    except Invalid as cause:
        raise _bad(DEFAULT_POLICY, cause) from cause


def _bad(key: str, cause: Invalid) -> Corrupt:
    return Corrupt(
        f"{PROPERTIES_PATH}: {key}: {cause.message}",
        next_step=cause.next_step or _UNSET,
        path=PROPERTIES_PATH,
        key=key,
        **{name: value for name, value in cause.facts.items() if name not in ("path", "key")},
    )
