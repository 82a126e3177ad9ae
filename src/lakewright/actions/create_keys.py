"""Which key generator a new table has, and what its properties say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright.format.hudi.config import TIME_BASED, KeyGenerator
from lakewright.format.hudi.key_columns import PLAIN_SINGLE_KEY
from lakewright.format.hudi.time_partitions import (
    check_time_settings,
    shifts_dates,
    why_not_formatted,
)
from lakewright.model.errors import Invalid
from lakewright.model.schema import (
    BINARY,
    DataType,
    Fixed,
    List,
    Map,
    Struct,
    Time,
    Timestamp,
)

_KINDS = ("SIMPLE", "TIMESTAMP")
#: The generators that a new table can have, and their classes, which version 6 stores.
CLASSES = {
    KeyGenerator.SIMPLE: "org.apache.hudi.keygen.SimpleKeyGenerator",
    KeyGenerator.COMPLEX: "org.apache.hudi.keygen.ComplexKeyGenerator",
    KeyGenerator.NON_PARTITION: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    KeyGenerator.TIMESTAMP: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    KeyGenerator.CUSTOM: "org.apache.hudi.keygen.CustomKeyGenerator",
}


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """The key and partition columns of a new table, and the generator that reads them.

    Partition columns are pairs of name and kind; the kind is empty where none was given.
    """

    key: tuple[str, ...]
    partitions: tuple[tuple[str, str], ...]
    generator: KeyGenerator

    @property
    def formatted(self) -> frozenset[str]:
        """The partition columns whose values are formatted as times."""
        if self.generator is KeyGenerator.TIMESTAMP:
            return frozenset(name for name, _ in self.partitions)
        return frozenset(name for name, kind in self.partitions if kind == "TIMESTAMP")

    def properties(self, version: int) -> dict[str, str]:
        """Return what ``hoodie.properties`` says of keys and partitions."""
        marked = self.generator is KeyGenerator.CUSTOM
        path = ",".join(f"{n}:{k}" if marked else n for n, k in self.partitions)
        named = {"hoodie.table.keygenerator.class": CLASSES[self.generator]}
        if version != 6:
            named = {"hoodie.table.keygenerator.type": self.generator.value}
        elif self.generator is KeyGenerator.COMPLEX and len(self.key) == 1:
            named[PLAIN_SINGLE_KEY.key] = "false"
        return {
            **named,
            **({"hoodie.table.recordkey.fields": ",".join(self.key)} if self.key else {}),
            **({"hoodie.table.partition.fields": path} if path else {}),
        }


def plan_keys(
    key: Sequence[str],
    partition_by: Sequence[str],
    asked: KeyGenerator | None,
    settings: Mapping[str, str],
    schema: Struct,
) -> KeyPlan:
    """Choose the generator as Hudi does, and check that columns and settings go with it.

    One key column and several partition columns make the complex generator, whose keys read
    ``id:42``, in Hudi as here.
    """
    partitions = tuple(_partition(text) for text in partition_by)
    generator = asked or _by_fields(key, partitions)
    if generator not in CLASSES:
        raise Invalid(
            f"key_generator={generator} is not for new tables.",
            next_step=f"Allowed: {', '.join(CLASSES)}.",
        )
    if generator is KeyGenerator.CUSTOM:
        partitions = tuple((name, kind or "SIMPLE") for name, kind in partitions)
    plan = KeyPlan(tuple(key), partitions, generator)
    _check_generator(plan)
    _check_columns(plan, schema)
    timed = any(name.startswith(TIME_BASED) for name in settings)
    if plan.formatted:
        check_time_settings(settings)
        _check_times(plan, settings, schema)
    elif timed:
        raise Invalid(
            f"settings {TIME_BASED}* are given, but no partition column is formatted as a time.",
            next_step="Give partition_by=['column:TIMESTAMP'], or key_generator='TIMESTAMP'.",
        )
    return plan


def _partition(text: str) -> tuple[str, str]:
    name, colon, kind = text.partition(":")
    if colon and kind.upper() not in _KINDS:
        raise Invalid(
            f"partition_by names {text!r}.",
            next_step=f"After the colon goes one of {', '.join(_KINDS)}.",
        )
    return name, kind.upper()


def _by_fields(key: Sequence[str], partitions: Sequence[tuple[str, str]]) -> KeyGenerator:
    if not partitions:
        return KeyGenerator.NON_PARTITION
    if any(kind for _, kind in partitions):
        return KeyGenerator.CUSTOM
    simple = len(key) <= 1 and len(partitions) == 1
    return KeyGenerator.SIMPLE if simple else KeyGenerator.COMPLEX


def _check_generator(plan: KeyPlan) -> None:
    columns = len(plan.partitions)
    match plan.generator:
        case KeyGenerator.NON_PARTITION:
            fits, wants = columns == 0, "no partition columns"
        case KeyGenerator.SIMPLE | KeyGenerator.TIMESTAMP:
            fits = columns == 1 and len(plan.key) <= 1
            wants = "one partition column and one key column"
        case _:
            fits, wants = columns > 0, "partition columns"
    if not fits:
        raise Invalid(
            f"key_generator={plan.generator} wants {wants}; given are {columns} partition and "
            f"{len(plan.key)} key columns.",
            next_step="Leave key_generator out to have it chosen.",
        )
    if plan.generator is not KeyGenerator.CUSTOM and any(kind for _, kind in plan.partitions):
        raise Invalid(
            f"key_generator={plan.generator} does not take kinds of partition columns.",
            next_step="Write them without ':', or use key_generator='CUSTOM'.",
        )


def _check_columns(plan: KeyPlan, schema: Struct) -> None:
    roles = {"key": plan.key, "partition_by": tuple(name for name, _ in plan.partitions)}
    for role, names in roles.items():
        check_role(role, names, schema)
        for name in names:
            kind = schema.find(name)
            if _has_text(kind) or (name in plan.formatted and not isinstance(kind, Time)):
                continue
            by_time = role == "partition_by" and isinstance(kind, Timestamp)
            raise Invalid(
                f"{role} names {name!r}, which is a {kind}: Hudi's upserts and bulk inserts write "
                "different texts for one value.",
                next_step=f"Partition by '{name}:TIMESTAMP' with {TIME_BASED}* settings."
                if by_time
                else "Use a column of text or whole numbers.",
                column=name,
            )


def _check_times(plan: KeyPlan, settings: Mapping[str, str], schema: Struct) -> None:
    """Refuse columns of times whose numbers Hudi would take for something else."""
    for name in sorted(plan.formatted):
        kind = schema.find(name)
        why = why_not_formatted(kind, settings)
        if why is None and shifts_dates(kind, settings):
            why = (
                "Hudi counts the days of a date in the unit of the settings, unless "
                f"{TIME_BASED}timestamp.type is SCALAR and "
                f"{TIME_BASED}timestamp.scalar.time.unit is DAYS"
            )
        if why is not None:
            raise Invalid(
                f"the times in {name!r} cannot be formatted so: {why}.",
                next_step="Give the settings that fit the column.",
                column=name,
            )


def _has_text(kind: DataType | None) -> bool:
    """Say whether all of Hudi's writers agree on the text of such values."""
    return kind != BINARY and not isinstance(kind, Timestamp | Time | Fixed)


def check_role(role: str, names: Sequence[str], schema: Struct) -> None:
    """Refuse columns that are absent, named twice, or of a type that holds others."""
    for name in names:
        kind = schema.find(name)
        if kind is None:
            schema.field(name)  # raises, and lists what there is
        if isinstance(kind, Struct | List | Map):
            raise Invalid(
                f"{role} names {name!r}, which is a {kind}.",
                next_step="Choose a column of a simple type; members of a struct are 'a.b'.",
                column=name,
            )
        if "," in name or "/" in name:
            raise Invalid(f"{role} names {name!r}.", next_step="Names hold no ',' and '/'.")
    if len(set(names)) != len(names):
        raise Invalid(
            f"{role} names a column twice: {', '.join(names)}.", next_step="Name each once."
        )
