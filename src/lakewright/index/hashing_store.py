"""The files of the partition-level bucket index: rules by version, and what writes have fixed.

Three kinds of files, all named after an instant. The hashing config is what Hudi reads, and it
decides: at every moment the newest one that counts describes how many buckets the partitions on
disk have. The hash config of the same instant holds the rules as the user wrote them, which may
say more than a hashing config can; without its hashing config it means nothing. The hashing
metadata of a write lists the partitions whose number is fixed, and by which write.

A config counts unless its instant is pending or was taken back. Every config of ours but the
first, which is made with the table, belongs to a write on the timeline: it begins to count in the
moment in which that write completes, and is deleted when the write is taken back. A hashing
metadata counts where its write has completed; one that is lost, or that a write which began
earlier overtook, costs nothing but the check: the entries come back with the next write.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.hashing_config import (
    ARCHIVE_FOLDER,
    CONFIGS_FOLDER,
    FIRST_INSTANT,
    HashingConfig,
    decode_hashing_config,
    encode_hashing_config,
    hashing_config_name,
    hashing_config_path,
    parse_hashing_config_name,
)
from lakewright.format.hudi.simple_hash_meta import (
    SIMPLE_ARCHIVE,
    SIMPLE_FOLDER,
    PartitionHashInfo,
    SimpleHashMeta,
    decode_hash_meta,
    encode_hash_meta,
    hash_config_path,
    hash_meta_path,
    parse_simple_name,
)
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.remembered import Remembered
from lakewright.model.bucket_rules.compiled import check_number
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import (
    parse_rules,
    parse_shipped,
    rules_json,
    shipped_text,
)
from lakewright.model.errors import AlreadyExists, Conflict, Corrupt, Invalid, NotFound
from lakewright.model.instant import Action
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.storage.port import FileStat, Storage
from lakewright.timeline.clock import newest_time
from lakewright.timeline.load import ATTEMPTS, load_timeline
from lakewright.timeline.undone import taken_back
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

Fixed = Mapping[str, PartitionHashInfo]

_NOTHING_FIXED: Fixed = {}
#: So many configs, and so many metadata files, are kept decoded in one process.
_KEPT_CONFIGS = 64
_KEPT_METAS = 4


@dataclass(frozen=True, slots=True)
class ConfigVersion:
    """One version of a table's rules: when it was set, and what it says.

    ``archived`` ones are too old for any instant on the active timeline.
    """

    instant: str
    rules: BucketRules
    pins: Mapping[str, int]
    config: HashingConfig
    archived: bool = False

    def counts(self, meta: str | None = None) -> BucketCounts:
        """Return the numbers of buckets while this version counts."""
        return BucketCounts(self.rules, self.pins, self.instant, meta)


_CONFIGS = Remembered(_KEPT_CONFIGS)
_METAS = Remembered(_KEPT_METAS)


@dataclass(frozen=True, slots=True)
class HashingStore:
    """The bucket index of the table in ``storage``; threads and tasks may share one."""

    storage: Storage

    # ------------------------------------------------------------------- read

    def load(self, view: TimelineView, *, verified: bool = True) -> BucketCounts | None:
        """Return how many buckets the partitions have now; None with one number for all.

        ``verified`` compares with the hashing metadata as well: ``Corrupt`` where a write fixed
        another number after the rules were set.
        """
        version = self.newest(view)
        if version is None or not verified:
            return None if version is None else version.counts()
        meta, fixed = self._fixed(view)
        self._check_fixed(view, version, meta, fixed)
        return version.counts(meta)

    def load_at(self, view: TimelineView, moment: str) -> BucketCounts | None:
        """Return the numbers as they were at a moment; None before there were any by partition.

        Moments are as in ``TimelineView.between``.
        """

        def counted(instant: str) -> bool:
            if instant == FIRST_INSTANT:
                return True
            if instant > moment or not self._counts(view, instant):
                return False
            return (view.completion_of(instant) or instant) <= moment

        version = self._settled(counted)
        return None if version is None else version.counts()

    def newest(self, view: TimelineView) -> ConfigVersion | None:
        """Return the version of the rules that counts; None with one number for all partitions."""
        return self._settled(lambda instant: self._counts(view, instant))

    def history(self, view: TimelineView) -> tuple[ConfigVersion, ...]:
        """Return all versions that count or did, oldest first, archived ones included."""
        found = {**self._listed(ARCHIVE_FOLDER), **self._listed(CONFIGS_FOLDER)}
        counting = sorted(i for i in found if self._counts(view, i))
        return tuple(self._version(i, found[i]) for i in counting)

    def fixed(self, view: TimelineView) -> Fixed:
        """Return what the last complete hashing metadata says; nothing where there is none.

        Entries that newer rules have overtaken are left out: they stay in the files until the
        next write to their partition.
        """
        found = self._fixed(view)[1]
        version = self.newest(view) if found else None
        if version is None:
            return found
        overtaken = {
            partition
            for partition, _ in self._disagreeing(version, found)
            if not _outranks(view, found[partition], version)
        }
        if not overtaken:
            return found
        return {path: info for path, info in found.items() if path not in overtaken}

    def is_empty(self) -> bool:
        """Whether there is no file of the index at all."""
        return next(self._all_files(), None) is None

    # ------------------------------------------------------------------ write

    def write_config(self, instant: str, rules: BucketRules, pins: Mapping[str, int]) -> None:
        """Write the rules of a version; they count once the write ``instant`` has completed.

        Call it under the lock, while that write is pending. Writing again is no error.
        """
        config = HashingConfig(shipped_text(rules, pins), rules.default, instant)
        self.storage.ensure_folder(ARCHIVE_FOLDER)
        self.storage.write(hash_config_path(instant), rules_json(rules).encode())
        self.storage.write(hashing_config_path(instant), encode_hashing_config(config))

    def write_meta(self, instant: str, changed: Mapping[str, int], view: TimelineView) -> bool:
        """Write the hashing metadata of a write, merged from the last complete one.

        ``changed`` are partitions with the numbers that the write gives them; False where nothing
        of it is new, or the table has one number for all, and no file is written. Call it under
        the lock, while the write is pending. Entries that newer rules have overtaken are brought
        up to date.
        """
        before = self._fixed(view)[1]
        news = {p: n for p, n in changed.items() if p not in before or before[p].bucket_number != n}
        version = (self._own(instant) or self.newest(view)) if news else None
        if version is None:
            return False
        fixed = dict(before)
        for partition, number in self._disagreeing(version, before):
            if not _outranks(view, before[partition], version):
                fixed[partition] = PartitionHashInfo(number, version.instant)
        shared = {number: PartitionHashInfo(number, instant) for number in set(news.values())}
        fixed.update((partition, shared[number]) for partition, number in news.items())
        meta = SimpleHashMeta(fixed, version.rules.default)
        self.storage.write(hash_meta_path(instant), encode_hash_meta(meta))
        return True

    def archive(self, view: TimelineView, needed: Iterable[str] = ()) -> tuple[str, ...]:
        """Move the versions aside that no instant of the timeline needs; return their instants.

        As in Hudi, the newest that is older than the timeline stays, and so does the one that
        counted at each savepoint and each instant of ``needed``. Hashing metadata that only
        archived instants wrote is deleted, but for the newest: rules tell the same.
        """
        start = view.start
        if start is None:
            return ()
        saved = (i.requested for i in view.instants if i.action is Action.SAVEPOINT)
        moments = sorted({start, *saved, *needed})
        configs = self._listed(CONFIGS_FOLDER)
        if not configs:
            return ()
        leaving = _unneeded([i for i in configs if self._counts(view, i)], start, moments)
        for instant in leaving:
            name = hashing_config_name(instant)
            self._move(f"{CONFIGS_FOLDER}/{name}", f"{ARCHIVE_FOLDER}/{name}")
            self._move(hash_config_path(instant), f"{SIMPLE_ARCHIVE}/{instant}.hash_config")
        metas = [i for i in self._metas() if view.is_committed(i)]
        self.storage.delete(hash_meta_path(i) for i in _unneeded(metas, start, moments))
        self.sweep(view)
        return tuple(leaving)

    def sweep(self, view: TimelineView) -> None:
        """Delete what writes that were taken back have left: hash configs and hashing metadata.

        Hashing configs are left alone: what lies there may have been put there by others.
        """
        known = newest_time(view)
        pending = {i.requested for i in view.pending()}
        configs = {*self._listed(CONFIGS_FOLDER), *self._listed(ARCHIVE_FOLDER)}
        going = []
        for file in self.storage.list(SIMPLE_FOLDER, stats=False):
            instant, kind = parse_simple_name(split(file.path)[1]) or ("", "")
            if not instant or instant in pending or instant > known:
                continue  # what is newer than the view has begun since
            alive = instant in configs if kind == "hash_config" else view.is_committed(instant)
            if not alive:
                going.append(file.path)
        if going:
            log.info("left files of the bucket index are deleted", extra=facts(files=len(going)))
            self.storage.delete(going)

    def clear(self) -> None:
        """Delete every file, of a place where no table is (any more)."""
        self.storage.delete(list(self._all_files()))

    # ---------------------------------------------------------------- support

    def _all_files(self) -> Iterator[str]:
        for folder in (CONFIGS_FOLDER, ARCHIVE_FOLDER, SIMPLE_FOLDER, SIMPLE_ARCHIVE):
            yield from (file.path for file in self.storage.list(folder, stats=False))

    def _listed(self, folder: str) -> dict[str, FileStat]:
        """Return the hashing configs of a folder by their instants."""
        named = (
            (parse_hashing_config_name(split(f.path)[1]), f) for f in self.storage.list(folder)
        )
        return {instant: file for instant, file in named if instant is not None}

    def _metas(self) -> dict[str, FileStat]:
        named = (
            (parse_simple_name(split(file.path)[1]), file)
            for file in self.storage.list(SIMPLE_FOLDER)
        )
        return {name[0]: file for name, file in named if name and name[1] == "hashing_meta"}

    def _counts(self, view: TimelineView, instant: str) -> bool:
        """Say whether a config of this instant is one of the table's, as the view knows it.

        As in Hudi, one whose instant is not on the timeline counts too: others may have put it
        there. One that is newer than the view may belong to a write that began since.
        """
        if instant == FIRST_INSTANT or instant in view.completions:
            return True
        if instant in taken_back(view):
            return False
        if view.is_committed(instant):
            return True
        if any(
            i.requested == instant and i.action.completes_as.writes_data for i in view.pending()
        ):
            return False
        if instant <= newest_time(view):
            return True
        fresh = load_timeline(self.storage, view.config)
        begun = any(i.requested == instant for i in fresh.instants)
        # A write that is taken back loses its config before it leaves the timeline.
        return not begun and self.storage.stat(hashing_config_path(instant)) is not None

    def _settled(self, counts: Callable[[str], bool]) -> ConfigVersion | None:
        """Return the newest version that counts; what moves while it is looked for is found."""
        for attempt in range(ATTEMPTS):
            configs = self._listed(CONFIGS_FOLDER)
            if not configs:
                return None
            try:
                found = _newest(configs, counts)
                if found is None:
                    found = _newest(self._listed(ARCHIVE_FOLDER), counts)
                return None if found is None else self._version(*found)
            except NotFound:
                if attempt == ATTEMPTS - 1:
                    raise
                log.info("a hashing config moved; listing again", extra=facts(try_=attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _version(self, instant: str, file: FileStat) -> ConfigVersion:
        key = (self.storage.uri, file)
        return _CONFIGS.get(key, lambda: self._read_version(instant, file.path), ConfigVersion)

    def _own(self, instant: str) -> ConfigVersion | None:
        """Return the version that a pending write has written, if it has."""
        file = self.storage.stat(hashing_config_path(instant))
        return None if file is None else self._version(instant, file)

    def _read_version(self, instant: str, path: str) -> ConfigVersion:
        config = decode_hashing_config(self.storage.read(path), path)
        archived = split(path)[0] == ARCHIVE_FOLDER
        try:
            rules, pins = parse_shipped(config.expressions, config.default_bucket_number)
            for rule in rules.rules:
                check_number(rule.buckets, f"the rule {rule.expression!r}")
            for partition, number in pins.items():
                check_number(number, f"partition {partition!r}")
        except Invalid as cause:
            raise Corrupt(
                f"{path}: {cause.message}",
                next_step="Every writer of the table reads these rules; mend the file.",
                path=path,
            ) from cause
        said = self._said(instant, config, pins)
        return ConfigVersion(instant, rules if said is None else said, pins, config, archived)

    def _said(
        self, instant: str, config: HashingConfig, pins: Mapping[str, int]
    ) -> BucketRules | None:
        """Return the rules as the user wrote them; None unless the config was made of them."""
        for path in (hash_config_path(instant), f"{SIMPLE_ARCHIVE}/{instant}.hash_config"):
            try:
                rules = parse_rules(self.storage.read(path).decode())
                made = (shipped_text(rules, pins), rules.default)
            except NotFound:
                continue
            except (Invalid, UnicodeDecodeError) as error:
                # A kind of rule that this process does not know, for example.
                log.warning(
                    "a hash config is passed over", extra=facts(path=path, error=str(error))
                )
                return None
            return rules if made == (config.expressions, config.default_bucket_number) else None
        return None

    def _fixed(self, view: TimelineView) -> tuple[str | None, Fixed]:
        """Return the instant and the entries of the last complete hashing metadata."""
        for attempt in range(ATTEMPTS):
            metas = self._metas()
            newest = max((i for i in metas if view.is_committed(i)), default=None)
            if newest is None:
                return None, _NOTHING_FIXED
            try:
                return newest, self._meta(metas[newest]).partitions
            except NotFound:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _meta(self, file: FileStat) -> SimpleHashMeta:
        key = (self.storage.uri, file)
        path = file.path
        return _METAS.get(
            key, lambda: decode_hash_meta(self.storage.read(path), path), SimpleHashMeta
        )

    def _check_fixed(
        self, view: TimelineView, version: ConfigVersion, meta: str | None, fixed: Fixed
    ) -> None:
        for partition, number in self._disagreeing(version, fixed):
            info = fixed[partition]
            if _outranks(view, info, version):
                raise Corrupt(
                    f"Partition {partition!r} has {info.bucket_number} buckets since the write "
                    f"{info.instant} ({hash_meta_path(meta or '')}), but {number} by the rules of "
                    f"{version.instant} ({hashing_config_path(version.instant)}).",
                    next_step="Find out which it has with table.buckets.check() before anything "
                    "is written.",
                    partition=partition,
                    fixed=info.bucket_number,
                    by_rules=number,
                )

    def _disagreeing(self, version: ConfigVersion, fixed: Fixed) -> Iterator[tuple[str, int]]:
        """Stream the partitions, with their numbers by the rules, that are fixed at others.

        Entries that agreed when this process looked last are not looked at again.
        """
        key = (self.storage.uri, version.instant, version.config)
        agreed = _AGREED.get(key, _Agreed, _Agreed)
        if agreed.whole is fixed:
            return
        entries = agreed.entries
        strange = [p for p, info in fixed.items() if entries.get(p) != info]
        wrong = False
        for partition, number in zip(strange, version.counts().numbers_of(strange), strict=True):
            if fixed[partition].bucket_number == number:
                entries[partition] = fixed[partition]
            else:
                wrong = True
                yield partition, number
        if not wrong:
            agreed.whole = fixed

    def _move(self, source: str, target: str) -> None:
        try:
            self.storage.move(source, target)
        except NotFound:
            pass  # archived by another one, or never there
        except AlreadyExists:
            # A move that was cut off, where moving is copying: the copy is whole.
            self.storage.delete([source])


@dataclass(slots=True)
class _Agreed:
    """What was found to agree with a version of the rules: entries, and a whole metadata."""

    entries: dict[str, PartitionHashInfo] = field(default_factory=dict)
    whole: Fixed | None = None


_AGREED = Remembered(_KEPT_METAS)


def check_counts(
    store: HashingStore, view: TimelineView, counts: BucketCounts, touched: Collection[str]
) -> dict[str, int]:
    """Raise ``Conflict`` where a partition of a write has another number now than it counted.

    ``view`` is the timeline under the lock, ``counts`` what the write has worked with, and
    ``touched`` its partitions. Returns those of them, with their numbers, that are to be fixed by
    ``write_meta`` before the write completes; none in a table with one number for all.
    """
    now = store.newest(view)
    if now is None:
        if counts.version is None:
            return {}
        raise Conflict(
            f"The bucket rules {counts.version}, with which this write began, are gone.",
            next_step="Nothing of this write took effect; try it again.",
            version=counts.version,
        )
    ours = dict(zip(touched, counts.numbers_of(touched), strict=True))
    if now.instant != counts.version:
        theirs = now.counts().numbers_of(ours)
        for (partition, mine), number in zip(ours.items(), theirs, strict=True):
            if mine != number:
                raise _lost(partition, mine, number, f"the bucket rules {now.instant}")
    lacking: dict[str, int] = {}
    fixed = store.fixed(view)
    for partition, mine in ours.items():
        info = fixed.get(partition)
        if info is not None and info.bucket_number == mine:
            continue
        if info is not None and _outranks(view, info, now):
            raise _lost(partition, mine, info.bucket_number, f"the write {info.instant}")
        lacking[partition] = mine
    return lacking


def _newest(
    files: Mapping[str, FileStat], counts: Callable[[str], bool]
) -> tuple[str, FileStat] | None:
    return next(((i, files[i]) for i in sorted(files, reverse=True) if counts(i)), None)


def _unneeded(instants: Iterable[str], start: str, moments: Iterable[str]) -> list[str]:
    """Return those before the timeline's start that counted at none of the moments."""
    ordered = sorted(instants)
    kept = {max((i for i in ordered if i <= moment), default="") for moment in moments}
    return [i for i in ordered if i < start and i not in kept]


def _outranks(view: TimelineView, info: PartitionHashInfo, version: ConfigVersion) -> bool:
    """Say whether a number that disagrees with rules was fixed after they were set.

    Metadata of a write that other software took back counts as archived one day: what no
    history tells of is no authority against the rules.
    """
    fixed = info.instant
    known = fixed in view.completions
    return fixed >= version.instant and (known or fixed in view.bodies.archived_since(fixed))


def _lost(partition: str, mine: int, now: int, by: str) -> Conflict:
    return Conflict(
        f"Partition {partition!r} has {now} buckets by {by}, and this write counted {mine}.",
        next_step="Nothing of this write took effect; try it again on the table as it is now.",
        partition=partition,
        counted=mine,
        number=now,
    )
