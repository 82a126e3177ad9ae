"""Options of partition TTL: Hudi's own names, obeyed as policies of one run."""

from collections.abc import Mapping

from lakewright.lifecycle.ttl import event_time
from lakewright.lifecycle.ttl.levels import Levels
from lakewright.model.errors import Invalid, InvalidOption
from lakewright.model.options import declare, parse_bool, parse_count, parse_names, parse_positive
from lakewright.model.ttl import PolicyKind, TtlPolicy

_CLASSES = {
    "KeepByTimeStrategy": PolicyKind.KEEP_BY_TIME,
    "KeepByCreationTimeStrategy": PolicyKind.KEEP_BY_CREATION_TIME,
    "KeepByEventTimeStrategy": PolicyKind.KEEP_BY_EVENT_TIME,
}
_NONE: tuple[str, ...] = ()


def _strategy(text: str) -> PolicyKind:
    kind = PolicyKind(text.strip().upper())
    if kind.ranks:
        raise ValueError(text)
    return kind


def _class(text: str) -> PolicyKind | None:
    name = text.strip().rpartition(".")[2]
    if name and name not in _CLASSES:
        raise ValueError(text)
    return _CLASSES.get(name)


INLINE = declare(
    "hoodie.partition.ttl.inline",
    parse_bool,
    False,
    doc="Whether partitions that have expired are dropped after every commit.",
    since="0.1",
    allowed="true or false",
)
STRATEGY = declare(
    "hoodie.partition.ttl.management.strategy.type",
    _strategy,
    PolicyKind.KEEP_BY_TIME,
    doc="What the days to retain are counted from, for a run that is not by stored policies.",
    since="0.1",
    allowed=", ".join(_CLASSES.values()),
)
STRATEGY_CLASS = declare(
    "hoodie.partition.ttl.strategy.class",
    _class,
    None,
    doc="Hudi's class for the strategy; it wins over the type. Its own classes are known.",
    since="0.1",
    allowed=", ".join(_CLASSES),
)
DAYS = declare(
    "hoodie.partition.ttl.strategy.days.retain",
    int,
    -1,
    doc="The days for which every partition is kept, for a run that is not by stored policies; "
    "nothing expires by it where it is not above 0.",
    since="0.1",
    allowed="a whole number",
)
SELECTED = declare(
    "hoodie.partition.ttl.strategy.partition.selected",
    parse_names,
    _NONE,
    doc="The partitions that such a run looks at; all where it is empty.",
    since="0.1",
    allowed="partition paths, with commas between",
)
MAX_DELETED = declare(
    "hoodie.partition.ttl.strategy.max.delete.partitions",
    parse_positive,
    1000,
    doc="The most partitions that one run drops; the rest goes with the next.",
    since="0.1",
    allowed="a whole number from 1",
)
EVENT_FORMAT = declare(
    "hoodie.partition.ttl.strategy.event.time.format",
    str,
    event_time.DEFAULT_FORMAT,
    doc="The format of the time in partition paths, in Java's letters; / goes between segments.",
    since="0.1",
    allowed="yyyy, then MM, dd, HH, mm, ss as far as paths go",
)
EVENT_SEGMENT = declare(
    "hoodie.partition.ttl.strategy.event.time.segment.start.index",
    parse_count,
    0,
    doc="The path segment, from 0, with which the time begins.",
    since="0.1",
    allowed="a whole number from 0",
)
EVENT_NULLS = declare(
    "hoodie.partition.ttl.strategy.event.time.delete.hive.default.partition",
    parse_bool,
    False,
    doc="Whether partitions without a time (null) expire.",
    since="0.1",
    allowed="true or false",
)


def requested_policies(options: Mapping[str, str], levels: Levels) -> tuple[TtlPolicy, ...]:
    """Return the policies that Hudi's options ask for; none where they retain no days.

    The time of an event is that of UTC, and of the period's start, as Hudi counts.
    """
    days = DAYS.read(options)
    if days <= 0 or not levels.levels:
        return ()
    kind = STRATEGY_CLASS.read(options) or STRATEGY.read(options)
    settings = _settings(options) if kind is PolicyKind.KEEP_BY_EVENT_TIME else {}
    try:
        return tuple(
            TtlPolicy(spec, kind, days, settings) for spec in _specs(SELECTED.read(options), levels)
        )
    except Invalid as cause:
        raise InvalidOption(f"{DAYS.key}: {cause.message}", next_step=cause.next_step) from cause


def check_used(asked: Mapping[str, str]) -> None:
    """Refuse what a call asks for by options that say nothing without the days to retain.

    For a call that gives no days, where the table has none either, or goes by its policies.
    """
    for option in (STRATEGY, STRATEGY_CLASS, SELECTED, EVENT_FORMAT, EVENT_SEGMENT, EVENT_NULLS):
        if option.given(asked):
            raise InvalidOption(
                f"{option.key}: nothing says for how many days partitions are kept.",
                next_step=f"Give {DAYS.key} too, or leave it out to go by the table's policies.",
                key=option.key,
                value=asked[option.key],
            )


def _settings(options: Mapping[str, str]) -> dict[str, str]:
    return {
        event_time.FORMAT: EVENT_FORMAT.read(options),
        event_time.ZONE: "UTC",
        event_time.REFERENCE: "start",
        event_time.SEGMENT: str(EVENT_SEGMENT.read(options)),
        event_time.NULLS: "delete" if EVENT_NULLS.read(options) else "keep",
    }


def _specs(selected: tuple[str, ...], levels: Levels) -> list[str]:
    if not selected:
        return ["/"]
    specs = []
    for path in dict.fromkeys(path.strip("/") for path in selected):
        spec = levels.spec_of(path)
        if spec is None:
            raise InvalidOption(
                f"{SELECTED.key}: {path!r} is no partition path of this table.",
                next_step=f"Its levels are {', '.join(levels.names)}.",
                key=SELECTED.key,
                value=path,
            )
        specs.append(str(spec))
    return specs
