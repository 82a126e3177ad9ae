"""The kinds of plans that there are, by the names with which plans say what they are."""

from collections.abc import Mapping

from lakewright.lifecycle.drops.dropping import DropKind
from lakewright.lifecycle.orphans.removing import OrphanKind
from lakewright.lifecycle.plans.kinds import Kind
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.ttl.planning import ttl_kind
from lakewright.model.errors import Unsupported

_ALL: tuple[Kind, ...] = (DropKind(), ttl_kind(), OrphanKind())
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}


def kind_of(plan: Plan) -> Kind:
    """Return the kind of a plan; ``Unsupported`` for one that a newer release may have made."""
    kind = KINDS.get(plan.kind)
    if kind is None:
        raise Unsupported(
            f"plans of the kind {plan.kind!r} are not known here.",
            next_step=f"Known: {', '.join(sorted(KINDS))}. A newer release may know it.",
            plan=plan.id,
        )
    return kind
