"""Plans that drop partitions: made from paths and reasons, whoever chose them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.drops.held import mark_of, planned_services, slices_of
from lakewright.lifecycle.drops.restored import restored_partitions
from lakewright.lifecycle.plans.options import check_wishes
from lakewright.lifecycle.plans.plan import Plan, PlanBase, PlanItem, Skipped, new_plan_id
from lakewright.model.files import FileSlice

#: The kind of plans that name the partitions to drop.
DELETE_PARTITIONS = "delete-partitions"
#: The fact of an item that tells its files from others.
MARK = "files"
#: The facts of an item that tell since when it is due, and how often undoes brought it back.
DUE, RETURNED = "expired", "came back"
#: Why a partition is left out that holds nothing.
EMPTY = "it holds no rows"


def plan_drop(
    work: Servicing,
    reasons: Mapping[str, str],
    *,
    kind: str = DELETE_PARTITIONS,
    by: str = "",
    options: Mapping[str, str] | None = None,
    looked_at: Iterable[str] = (),
    skipped: Iterable[Skipped] = (),
    facts: Mapping[str, Mapping[str, str]] | None = None,
    held: Mapping[str, Sequence[FileSlice]] | None = None,
    returned: Mapping[str, int] | None = None,
) -> Plan:
    """Plan to drop partitions, each for its reason; nothing is changed, and nothing kept yet.

    What holds no rows is left out, and so is what a service is planned on. ``looked_at`` are
    texts by which the plan was made, and by whose change it is stale; ``facts`` are more values of
    items, by partition. ``held`` are the live slices of the partitions where the caller has just
    listed them; otherwise the table is looked at anew. ``returned`` is how often undoes brought
    partitions back, where the caller looked that up before the table.
    """
    if returned is None:
        back = restored_partitions(work.state.storage)
        returned = {path: one.times for path, one in back.items()}
    state = work.state if held is not None else work.state.refresh()
    check_wishes(work.options, state.config.properties)
    now = datetime.now(UTC)
    busy = planned_services(state)
    found = slices_of(state, list(reasons)) if held is None else held
    items, left = [], list(skipped)
    for path, reason in reasons.items():
        slices = found.get(path, ())
        if not slices:
            left.append(Skipped(path, EMPTY))
        elif path in busy:
            left.append(Skipped(path, busy[path]))
        else:
            items.append(
                PlanItem(
                    target=path,
                    reason=reason,
                    files=sum(len(piece.paths) for piece in slices),
                    bytes=sum(piece.size for piece in slices),
                    facts={
                        **(facts or {}).get(path, {}),
                        MARK: mark_of(slices),
                        **({RETURNED: str(returned[path])} if path in returned else {}),
                    },
                )
            )
    return Plan(
        id=new_plan_id(kind, now),
        table=work.name,
        kind=kind,
        base=PlanBase.of(state.timeline, *looked_at),
        items=tuple(items),
        created_by=by,
        created_at=now,
        options=options or {},
        skipped=tuple(left),
    )
