"""Procedures of partition TTL and of plans: those of the specification, Hudi's own, and ours."""

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.api.ttl import Policies, PolicySet
from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    FLAG,
    LONG,
    OPTIONS,
    PATH,
    TABLE,
    TEXT,
    Row,
    limited,
    named_table,
    required,
    settings_of,
    text_of,
    whole_of,
)
from lakewright.lifecycle.ttl.looking import parse_clock
from lakewright.lifecycle.ttl.options import DAYS, STRATEGY
from lakewright.model.errors import Invalid
from lakewright.model.shown import Shown
from lakewright.model.ttl import PolicyKind, TtlPolicy

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.plans import TablePlan
    from lakewright.lifecycle.plans.records import Applied
    from lakewright.lifecycle.ttl.expiry import Verdict

ALL = Parameter("limit", Kind.WHOLE, None, doc="At most so many rows.", least=0)
SPEC = Parameter(
    "partitionSpec", default=None, doc="Such as 'user_id=1/', or 'user_id=*/' for each of them."
)
NOW = Parameter("now", default=None, doc="The clock to judge by, such as '2026-11-16T07:00:00Z'.")
STRICT = Parameter("strict", Kind.FLAG, False, doc="Drop nothing where something is skipped.")
PLAN = Parameter("plan", default=None, doc="The id of a plan.")
_SETTINGS = PolicyKind.KEEP_BY_EVENT_TIME.settings
_MICROS = pa.timestamp("us", tz="UTC")


def _added(lake: "Lake", arguments: Arguments, *, dry_run: bool) -> PolicySet:
    name = "add_ttl_policy"
    value = arguments["policyValue"]
    if value is None:
        raise Invalid(f"{name} needs policyValue.", next_step="Write policyValue => '30'.")
    return named_table(lake, arguments).ttl.add(
        required(arguments, "partitionSpec", name),
        required(arguments, "policy", name),
        str(value),
        settings={key: str(arguments[key]) for key in _SETTINGS if arguments[key] is not None},
        dry_run=dry_run,
    )


def _plan_adding(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    yield _added(lake, arguments, dry_run=True)


@procedure(
    "add_ttl_policy",
    pa.schema(
        [
            ("partition_spec", TEXT),
            ("policy", TEXT),
            ("policy_value", LONG),
            ("replaced", TEXT),
            ("matches", LONG),
            ("would_expire", LONG),
        ]
    ),
    TABLE,
    SPEC,
    Parameter("policy", default=None, doc="KEEP_BY_TIME, KEEP_BY_COUNT, KEEP_BY_SIZE, …"),
    Parameter("policyValue", Kind.WHOLE, None, doc="The days, partitions or bytes to keep."),
    *(Parameter(name, default=None, doc="A setting of KEEP_BY_EVENT_TIME.") for name in _SETTINGS),
    PATH,
    writes=True,
    plan=_plan_adding,
)
def add_ttl_policy(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Set how long partitions are kept; the answer says what the policy does now."""
    done = _added(lake, arguments, dry_run=False)
    yield {
        "partition_spec": done.policy.spec,
        "policy": str(done.policy.kind),
        "policy_value": done.policy.value,
        "replaced": None if done.replaced is None else str(done.replaced),
        "matches": done.effect.matches,
        "would_expire": done.effect.expires,
    }


_POLICIES = pa.schema([("partition_spec", TEXT), ("policy", TEXT), ("policy_value", LONG)])


def _policy(policy: TtlPolicy) -> Row:
    return {
        "partition_spec": policy.spec,
        "policy": str(policy.kind),
        "policy_value": policy.value,
    }


@procedure("show_ttl_policies", _POLICIES, TABLE, PATH, ALL)
def show_ttl_policies(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the TTL policies of a table, those without values first."""
    return limited(map(_policy, named_table(lake, arguments).ttl.show()), arguments)


def _dropped(lake: "Lake", arguments: Arguments, *, dry_run: bool) -> TtlPolicy:
    spec = required(arguments, "partitionSpec", "drop_ttl_policy")
    return named_table(lake, arguments).ttl.drop(spec, dry_run=dry_run)


def _plan_dropping(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    policy = _dropped(lake, arguments, dry_run=True)
    yield Policies(str(arguments["table"] or arguments["path"]), (policy,))


@procedure("drop_ttl_policy", _POLICIES, TABLE, SPEC, PATH, writes=True, plan=_plan_dropping)
def drop_ttl_policy(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Remove the TTL policy of a partition spec."""
    yield _policy(_dropped(lake, arguments, dry_run=False))


_VERDICTS = pa.schema(
    [
        ("partition", TEXT),
        ("expired", FLAG),
        ("policy", TEXT),
        ("expires_at", _MICROS),
        ("reason", TEXT),
    ]
)


def _verdict(verdict: "Verdict") -> Row:
    return {
        "partition": verdict.partition,
        "expired": verdict.expired,
        "policy": None if verdict.policy is None else str(verdict.policy),
        "expires_at": verdict.expires_at,
        "reason": verdict.reason,
    }


@procedure("show_expired_partitions", _VERDICTS, TABLE, PATH, NOW, OPTIONS, ALL)
def show_expired_partitions(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the partitions that have expired, the longest overdue first."""
    ttl = named_table(lake, arguments).ttl
    found = ttl.expired(_now(arguments), options=settings_of(arguments))
    return limited(map(_verdict, found), arguments)


@procedure(
    "explain_ttl",
    _VERDICTS,
    TABLE,
    Parameter("partition", default=None, doc="The path of a partition."),
    PATH,
    NOW,
    OPTIONS,
)
def explain_ttl(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Say why a partition is kept or goes, and when it will go."""
    partition = required(arguments, "partition", "explain_ttl")
    ttl = named_table(lake, arguments).ttl
    yield _verdict(ttl.explain(partition, _now(arguments), options=settings_of(arguments)))


@procedure(
    "run_ttl",
    pa.schema([("deleted_partitions", TEXT), ("status", TEXT), ("reason", TEXT), ("plan", TEXT)]),
    TABLE,
    Parameter("ttl_policy", default=None, doc="For this run alone: KEEP_BY_TIME, …"),
    Parameter("retain_days", Kind.WHOLE, None, doc="For this run alone: how many days are kept."),
    OPTIONS,
    Parameter("dry_run", Kind.FLAG, True, doc="Say what would be dropped, and stop."),
    STRICT,
    NOW,
    PATH,
    writes=True,
)
def run_ttl(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Drop the partitions that have expired, by one commit; by default only say which."""
    table = named_table(lake, arguments)
    now, options = _now(arguments), _ttl_options(arguments)
    if arguments["dry_run"]:
        plan = table.ttl.preview(now, options=options)
        for item in plan.items:
            yield _ran(item.target, "would be dropped: dry_run => false drops it", item.reason)
        yield from (_ran(left.target, "skipped", left.reason) for left in plan.skipped)
        return
    ran = table.ttl.run(now, strict=bool(arguments["strict"]), options=options)
    reasons = {item.target: item.reason for item in ran.plan.items}
    applied = ran.applied
    for target in () if applied is None else applied.done:
        yield _ran(target, "dropped", reasons[target], ran.plan.id)
    for left in (*ran.plan.skipped, *(() if applied is None else applied.skipped)):
        yield _ran(left.target, "skipped", left.reason, ran.plan.id)


def _ttl_options(arguments: Arguments) -> dict[str, str]:
    options = settings_of(arguments)
    days = whole_of(arguments, "retain_days")
    if days is not None:
        if days < 1:
            raise Invalid(
                f"retain_days is {days}.", next_step="Give 1 or more.", parameter="retain_days"
            )
        options[DAYS.key] = str(days)
    policy = text_of(arguments, "ttl_policy")
    if policy is not None:
        if not DAYS.given(options):
            raise Invalid(
                f"ttl_policy is {policy}, and nothing says how many days are kept.",
                next_step="Give retain_days, or leave both out to go by the table's policies.",
                parameter="ttl_policy",
            )
        options[STRATEGY.key] = policy
    return options


def _ran(partition: str, status: str, reason: str, plan: str | None = None) -> Row:
    return {"deleted_partitions": partition, "status": status, "reason": reason, "plan": plan}


@procedure(
    "show_plans",
    pa.schema(
        [
            ("plan", TEXT),
            ("kind", TEXT),
            ("state", TEXT),
            ("items", LONG),
            ("files", LONG),
            ("bytes", LONG),
            ("created_at", _MICROS),
            ("created_by", TEXT),
            ("instant", TEXT),
            ("undo_until", _MICROS),
            ("damage", TEXT),
        ]
    ),
    TABLE,
    PATH,
    ALL,
)
def show_plans(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the plans that are kept with a table, newest first."""
    rows = (
        {
            "plan": record.plan.id,
            "kind": record.plan.kind,
            "state": str(record.state),
            "items": len(record.plan.items),
            "files": record.plan.files,
            "bytes": record.plan.bytes,
            "created_at": record.plan.created_at,
            "created_by": record.plan.created_by,
            "instant": None if record.applied is None else record.applied.instant,
            "undo_until": None if record.applied is None else record.applied.undo_until,
            "damage": record.damage,
        }
        for record in named_table(lake, arguments).plans()
    )
    return limited(rows, arguments)


_DONE = pa.schema([("target", TEXT), ("status", TEXT), ("reason", TEXT), ("instant", TEXT)])


def _plan_applying(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    yield _plan(lake, arguments, "apply_plan")


@procedure("apply_plan", _DONE, TABLE, PLAN, STRICT, PATH, writes=True, plan=_plan_applying)
def apply_plan(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Carry out a plan that is kept with a table."""
    plan = _plan(lake, arguments, "apply_plan")
    return _applied(plan, plan.apply(strict=bool(arguments["strict"])))


def _applied(plan: "TablePlan", applied: "Applied") -> Iterator[Row]:
    reasons = {item.target: item.reason for item in plan.items}
    for target in applied.done:
        yield _did(target, "done", reasons.get(target), applied.instant)
    for left in applied.skipped:
        yield _did(left.target, "skipped", left.reason, None)


def _plan_undoing(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    yield _plan(lake, arguments, "undo_plan").preview_undo()


@procedure("undo_plan", _DONE, TABLE, PLAN, PATH, writes=True, plan=_plan_undoing)
def undo_plan(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Take back what a plan did; what was written since stays."""
    undone = _plan(lake, arguments, "undo_plan").undo()
    for target in undone.restored:
        yield _did(target, "restored", undone.how, undone.instant)


def _did(target: str, status: str, reason: str | None, instant: str | None) -> Row:
    return {"target": target, "status": status, "reason": reason, "instant": instant}


def _plan(lake: "Lake", arguments: Arguments, name: str) -> "TablePlan":
    return named_table(lake, arguments).plan(required(arguments, "plan", name))


def _now(arguments: Arguments) -> dt.datetime | None:
    text = text_of(arguments, "now")
    return None if text is None else parse_clock(text)
