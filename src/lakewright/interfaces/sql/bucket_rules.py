"""Statements about bucket rules: setting them, and showing them.

The rules of a table are no property of it: they have versions, and what partitions have follows
from several of them. SQL shows and sets them as if they were one, under Hudi's name.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.index.layout import BUCKETS, PARTITION_RULES, RULE_TYPE, IndexKind, IndexLayout
from lakewright.interfaces.sql.results import done
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.errors import Invalid, LakewrightError

if TYPE_CHECKING:
    from lakewright.api.table import Table

_ABOUT_RULES = (PARTITION_RULES.key, RULE_TYPE.key)


def set_rules(table: "Table", changes: Mapping[str, str | None], *, if_exists: bool) -> pa.Table:
    """Carry out SET of properties, bucket rules among them; None removes a property."""
    text = changes.get(PARTITION_RULES.key)
    if text is None:
        raise Invalid(
            f"{PARTITION_RULES.key} cannot be removed: partitions have their numbers by it.",
            next_step="Set the number that all partitions are to have: "
            f"SET ('{PARTITION_RULES.key}' = '8').",
            key=PARTITION_RULES.key,
        )
    RULE_TYPE.read({key: value for key, value in changes.items() if value is not None})
    number = changes.get(BUCKETS.key)
    default = None if number is None else BUCKETS.read({BUCKETS.key: number})
    if default is None and not text.lstrip().startswith("{"):
        default = table.buckets.rules.default
    rest = {k: v for k, v in changes.items() if k not in (*_ABOUT_RULES, BUCKETS.key)}
    if rest:
        table.set_properties(rest, if_exists=if_exists)
    return done(str(table.buckets.set(text, default=default)))


def rules_of(table: "Table") -> BucketRules | None:
    """Return the rules of a table that has numbers by partition; None for all others."""
    layout = IndexLayout.of(table.definition.properties, {})
    if layout.stored and layout.kind is not IndexKind.BUCKET:
        return None
    try:
        return None if table.buckets.version is None else table.buckets.rules
    except LakewrightError:
        return None  # no bucket table, or one that cannot be read: it is shown without


def with_rules(table: "Table", properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of a table with its rules, in whose place no number stands."""
    rules = rules_of(table)
    if rules is None:
        return properties
    text = json.dumps(json.loads(rules_json(rules)), ensure_ascii=False)
    kept = {key: value for key, value in properties.items() if key != BUCKETS.key}
    return {**kept, PARTITION_RULES.key: text}


def described(table: "Table") -> dict[str, str]:
    """Return what DESCRIBE EXTENDED says of buckets; nothing in a table without them."""
    layout = IndexLayout.of(table.definition.properties, {})
    if layout.kind is not IndexKind.BUCKET:
        return {}
    rules = rules_of(table)
    if rules is None:
        number = "" if layout.buckets is None else str(layout.buckets.rules.default)
        return {"Buckets": number}
    told = "; ".join(f"{rule.expression} -> {rule.buckets}" for rule in rules.rules)
    return {
        "Buckets": f"{told}; default -> {rules.default}" if told else str(rules.default),
        "Bucket Rules": str(table.buckets.version),
    }
