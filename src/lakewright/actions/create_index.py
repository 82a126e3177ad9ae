"""How a new table's records are spread over file groups, as its properties will say."""

import logging
from collections.abc import Mapping, Sequence

from lakewright.index.layout import (
    BUCKETS,
    HASH_FIELDS,
    INDEX_TYPE,
    PARTITION_RULES,
    RULE_TYPE,
    WRITERS_KEY,
    IndexKind,
)
from lakewright.model.bucket_rules.compiled import check_rules
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.errors import Invalid
from lakewright.model.options import parse_names

log = logging.getLogger(__name__)


def take_rules(
    buckets: BucketRules | int | None, given: dict[str, str]
) -> tuple[BucketRules | None, int | None]:
    """Return the bucket rules of a new table, and its number of buckets, as far as they are told.

    Rules and their default may stand among the properties under Hudi's names. They are taken from
    there: what a table's properties say cannot change with its rules, and Hudi refuses to change
    rules against a number that is stored.
    """
    text = given.pop(PARTITION_RULES.key, None)
    RULE_TYPE.read(given)
    given.pop(RULE_TYPE.key, None)
    rules = buckets if isinstance(buckets, BucketRules) else None
    number = buckets if isinstance(buckets, int) else None
    stored = BUCKETS.read(given) if BUCKETS.given(given) else None
    if text is not None:
        told = parse_rules(text, number if stored is None else stored)
        if rules is not None and rules != told:
            raise Invalid(
                f"the property {PARTITION_RULES.key} and buckets= give different rules.",
                next_step="Give one of them.",
                key=PARTITION_RULES.key,
            )
        rules = told
    if rules is None:
        return None, number
    for name, value in (("buckets", number), (BUCKETS.key, stored)):
        if value is not None and value != rules.default:
            raise Invalid(
                f"{name}={value}, but the rules have {rules.default} as default.",
                next_step=f"Leave {name} out: the rules' default counts.",
            )
    given.pop(BUCKETS.key, None)
    for warning in check_rules(rules):
        log.warning("bucket rules: %s", warning)
    return rules, rules.default


def index_properties(
    key: Sequence[str],
    kind: IndexKind | None,
    buckets: int | None,
    hash_by: Sequence[str],
    given: Mapping[str, str],
) -> dict[str, str]:
    """Return the properties of the index; what ``given`` says under Hudi's names counts too."""
    said = IndexKind.BUCKET if buckets is not None and kind is None else kind
    if said is None:
        said = INDEX_TYPE.read(given)
    if said is not IndexKind.BUCKET:
        if buckets is not None or hash_by:
            raise Invalid(
                f"index={said} has no buckets, but buckets or hash_by is given.",
                next_step="Leave them out, or use index='BUCKET'.",
            )
        return {INDEX_TYPE.key: said.value}
    fields = tuple(hash_by) or HASH_FIELDS.read(given) or tuple(key)
    if buckets is None and not BUCKETS.given(given):
        raise Invalid(
            "a bucket table needs its number of buckets.",
            next_step="Give buckets=N: file groups per partition, or rules by partition.",
        )
    number = BUCKETS.read({BUCKETS.key: str(buckets)} if buckets is not None else given)
    if not key:
        raise Invalid(
            "a table with generated keys has no buckets: no record is looked for by its key.",
            next_step="Name the key columns, or leave buckets out.",
        )
    if strange := [name for name in fields if name not in key]:
        raise Invalid(
            f"hash_by names {', '.join(strange)}, not of the record key.",
            next_step=f"Allowed: some of {', '.join(key)}.",
        )
    if len(set(fields)) != len(fields):
        raise Invalid(
            f"hash_by names a column twice: {', '.join(fields)}.", next_step="Name each once."
        )
    return {
        INDEX_TYPE.key: said.value,
        BUCKETS.key: str(number),
        HASH_FIELDS.key: ",".join(fields),
        WRITERS_KEY: ",".join(key),
    }


def same_setting(key: str, one: str, other: str) -> bool:
    """Say whether two texts of a property mean the same."""
    if key in {HASH_FIELDS.key, WRITERS_KEY}:
        return parse_names(one) == parse_names(other)
    return one.strip().lower() == other.strip().lower()
