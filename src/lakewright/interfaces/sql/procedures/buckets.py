"""Procedures of the bucket index: Hudi's own, under its names, and those of ours."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.index.layout import BUCKETS, INDEX_TYPE, RULE_TYPE, IndexKind
from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    FLAG,
    INT,
    LONG,
    OPTIONS,
    PATH,
    TABLE,
    TEXT,
    Row,
    limited,
    named_table,
    settings_of,
    text_of,
    whole_of,
)
from lakewright.interfaces.sql.rule_texts import rules_text
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import parse_rules, rules_json
from lakewright.model.errors import Invalid
from lakewright.model.options import parse_names

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table
    from lakewright.index.hashing_store import ConfigVersion

ALL = Parameter("limit", Kind.WHOLE, None, doc="At most so many rows.", least=0)
PARTITIONS = Parameter("partitions", default=None, doc="The only ones, commas between.")
_ANSWER = pa.schema([("result", TEXT), ("operation", TEXT), ("details", TEXT)])
_NOT_GIVEN = -1


@procedure(
    "partition_bucket_index_manager",
    _ANSWER,
    TABLE,
    Parameter("overwrite", default=None, doc="New rules, in place of those that are."),
    Parameter("bucket_number", Kind.WHOLE, _NOT_GIVEN, doc="For partitions that match no rule."),
    Parameter("add", default=None, doc="Rules that are put in front of those that are."),
    Parameter("dry_run", Kind.FLAG, None, doc="Of overwrite and add: true unless said otherwise."),
    Parameter("rollback", default=None, doc="The instant of a change of rules to take back."),
    Parameter("show_config", Kind.FLAG, False, doc="Show the versions of the rules."),
    Parameter("rule", default="regex", doc="How expressions are read: regex."),
    OPTIONS,
    PATH,
    writes=True,
)
def partition_bucket_index_manager(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Change bucket rules and rescale by them, take that back, or show the rules."""
    table, options = named_table(lake, arguments), settings_of(arguments)
    RULE_TYPE.read({RULE_TYPE.key: str(arguments["rule"])})
    number = whole_of(arguments, "bucket_number")
    stored = bool(table.buckets.versions()) or BUCKETS.given(table.definition.properties)
    if number != _NOT_GIVEN and not stored:
        # What plain tables of Hudi do not store; ours do, and it counts.
        options = {INDEX_TYPE.key: IndexKind.BUCKET.value, BUCKETS.key: str(number), **options}
    overwrite, add = text_of(arguments, "overwrite"), text_of(arguments, "add")
    rollback = text_of(arguments, "rollback")
    if arguments["show_config"]:
        shown = ";".join(_as_hudi(version) for version in reversed(table.buckets.versions()))
        yield _row("SHOW_CONFIG", shown)
    elif rollback is not None:
        yield _take_back(table, rollback, options, dry_run=arguments["dry_run"] is True)
    elif overwrite is not None or add is not None:
        now = table.buckets.counts(options=options).rules
        rules = _wanted(now, overwrite, add, number)
        yield _rescale(table, rules, options, dry_run=arguments["dry_run"] is not False)
    else:
        told = "Nothing to do: give overwrite, add, rollback or show_config."
        yield {"result": "ERROR", "operation": "INVALID_OPERATION", "details": told}


def _row(operation: str, details: str) -> Row:
    return {"result": "SUCCESS", "operation": operation, "details": details}


def _as_hudi(version: "ConfigVersion") -> str:
    """Write a version as Hudi's own procedure does."""
    config = version.config
    return (
        f"PartitionBucketIndexHashingConfig{{expressions='{config.expressions}', "
        f"defaultBucketNumber='{config.default_bucket_number}', rule='{config.rule}', "
        f"version='{config.version}', instant={config.instant}}}"
    )


def _wanted(
    now: BucketRules, overwrite: str | None, add: str | None, number: int | None
) -> BucketRules:
    default = now.default if number in (None, _NOT_GIVEN) else number
    if overwrite is not None:
        return parse_rules(rules_text(overwrite), default)
    assert add is not None
    first = parse_rules(rules_text(add), default)
    return BucketRules((*first.rules, *now.rules), now.default)


def _rescale(table: "Table", rules: BucketRules, options: dict[str, str], *, dry_run: bool) -> Row:
    plan = table.buckets.plan_rescale(rules=rules, options=options)
    if dry_run:
        told = ";".join(f"\n{item.partition} => {item.after}\n" for item in plan.items)
        return _row("DRY_RUN_OVERWRITE", told)
    return _row("OVERWRITE", str(plan.apply()))


def _take_back(table: "Table", instant: str, options: dict[str, str], *, dry_run: bool) -> Row:
    """Undo a change of the rules, and all that came after it."""
    versions = [version.instant for version in table.buckets.versions()]
    if instant not in versions:
        raise Invalid(
            f"rollback: no rules were set at {instant}.",
            next_step=f"Known: {', '.join(versions) or 'none'}.",
            parameter="rollback",
        )
    before = versions[versions.index(instant) + 1 :]
    if not before:
        raise Invalid(
            f"rollback: the rules of {instant} are the first, and there are none to go back to.",
            next_step="Give others with overwrite.",
            parameter="rollback",
        )
    if dry_run:
        plan = table.buckets.plan_undo(to=before[0], options=options)
        return _row("DRY_RUN_ROLLBACK", str(plan))
    return _row("ROLLBACK", str(table.buckets.undo(to=before[0], options=options)))


@procedure(
    "show_bucket_config",
    pa.schema(
        [
            ("instant", TEXT),
            ("current", FLAG),
            ("archived", FLAG),
            ("default_bucket_number", INT),
            ("rules", TEXT),
            ("pinned_partitions", INT),
            ("expressions", TEXT),
        ]
    ),
    TABLE,
    PATH,
    ALL,
)
def show_bucket_config(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show the versions of a table's bucket rules, newest first."""
    return limited(_versions(named_table(lake, arguments)), arguments)


def _versions(table: "Table") -> Iterator[Row]:
    for place, version in enumerate(table.buckets.versions()):
        yield {
            "instant": version.instant,
            "current": place == 0,
            "archived": version.archived,
            "default_bucket_number": version.rules.default,
            "rules": json.dumps(json.loads(rules_json(version.rules)), ensure_ascii=False),
            "pinned_partitions": len(version.pins),
            "expressions": version.config.expressions,
        }


@procedure(
    "show_buckets",
    pa.schema(
        [
            ("partition", TEXT),
            ("buckets", INT),
            ("decided_by", TEXT),
            ("by_rules", INT),
            ("file_groups", LONG),
            ("bytes", LONG),
            ("largest_bucket", LONG),
            ("sizes", TEXT),
        ]
    ),
    TABLE,
    PATH,
    PARTITIONS,
    ALL,
)
def show_buckets(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show how many buckets partitions have, what decides it, and their sizes."""
    shown = named_table(lake, arguments).buckets.show(partitions=_partitions(arguments))
    rows = (
        {
            "partition": one.partition,
            "buckets": one.buckets,
            "decided_by": one.by,
            "by_rules": one.wanted,
            "file_groups": one.size.groups,
            "bytes": one.size.bytes,
            "largest_bucket": one.size.largest,
            "sizes": one.size.strip,
        }
        for one in shown.partitions
    )
    return limited(rows, arguments)


def _partitions(arguments: Arguments) -> list[str] | None:
    given = text_of(arguments, "partitions")
    return None if given is None else list(parse_names(given))


@procedure(
    "advise_buckets",
    pa.schema(
        [
            ("partition", TEXT),
            ("buckets", INT),
            ("advised", INT),
            ("bytes", LONG),
            ("sizes", TEXT),
            ("why", TEXT),
            ("rules", TEXT),
        ]
    ),
    TABLE,
    PATH,
    PARTITIONS,
    Parameter("target_bytes", Kind.WHOLE, None, doc="About how large a bucket should be."),
    Parameter("most", Kind.WHOLE, None, doc="How many buckets a partition gets at most."),
    ALL,
)
def advise_buckets(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Say how many buckets partitions should have, and the rules that give them."""
    advice = named_table(lake, arguments).buckets.advise(
        partitions=_partitions(arguments),
        target_bytes=whole_of(arguments, "target_bytes"),
        most=whole_of(arguments, "most"),
    )
    rows = (
        {
            "partition": one.partition,
            "buckets": one.buckets,
            "advised": one.advised,
            "bytes": one.size.bytes,
            "sizes": one.size.strip,
            "why": one.why,
            "rules": advice.rules_json,
        }
        for one in advice.partitions
    )
    return limited(rows, arguments)


@procedure(
    "check_buckets",
    pa.schema([("code", TEXT), ("partition", TEXT), ("message", TEXT), ("rows", LONG)]),
    TABLE,
    PATH,
    PARTITIONS,
    Parameter("rows", Kind.FLAG, True, doc="Hash the keys of all rows; else names of files only."),
    ALL,
)
def check_buckets(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Find buckets with two file groups and rows in wrong buckets; no row means that none are."""
    report = named_table(lake, arguments).buckets.check(
        partitions=_partitions(arguments), rows=bool(arguments["rows"])
    )
    rows = (
        {"code": p.code, "partition": p.partition, "message": p.message, "rows": p.rows}
        for p in report.problems
    )
    return limited(rows, arguments)


@procedure(
    "repair_buckets",
    pa.schema(
        [
            ("partition", TEXT),
            ("buckets", INT),
            ("mended", INT),
            ("file_groups", INT),
            ("rows", LONG),
            ("why", TEXT),
            ("instant", TEXT),
        ]
    ),
    TABLE,
    PATH,
    PARTITIONS,
    Parameter("dry_run", Kind.FLAG, True, doc="Say what would be done, and stop."),
    OPTIONS,
    writes=True,
)
def repair_buckets(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Put rows into the buckets of their keys, one file group per bucket."""
    table = named_table(lake, arguments)
    plan = table.buckets.repair(partitions=_partitions(arguments), options=settings_of(arguments))
    done = None if arguments["dry_run"] else plan.apply().instant
    for item in plan.plan.items:
        yield {
            "partition": item.partition,
            "buckets": item.buckets,
            "mended": item.mended,
            "file_groups": item.groups,
            "rows": item.rows,
            "why": item.why,
            "instant": None if done is None else done.requested,
        }
