"""Make small tables with the releases of Hudi that own table versions 6 and 8.

    ./dev interop-python tests/golden/make_old_tables.py --jars FOLDER

FOLDER holds ``hudi-spark3.5-bundle_2.12-0.15.0.jar`` and the one of 1.0.2. Tables of these
versions that later releases write have other properties, and services of other habits; what is
recorded of these here is, as in ``make_tables.py``, what the release itself returned.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from make_tables import HERE, MODES, MOR, RECIPES, Maker, _cdc, order, pack, session

BUNDLE = "hudi-spark3.5-bundle_2.12"
NO_MARKERS = {"rollback__using__markers": "false"}
WITH_METADATA = {"metadata__enable": "true"}


class OldMaker(Maker):
    """A table of an older release."""

    def window(
        self, writes: list[dict[str, Any]], after: int, upto: int | None, changes: bool = False
    ) -> dict[str, Any]:
        """Ask for a window from just after its start: to 1.0 the write that ended there belongs."""
        asked = [dict(write) for write in writes]
        if after >= 0 and (self.path / ".hoodie" / "timeline").is_dir():
            asked[after]["completed"] = str(int(asked[after]["completed"]) + 1)
        return super().window(asked, after, upto, changes)

    def lose_completion(self) -> None:
        """Take the last write's completion away, as if the writer had died just before it."""
        last = self.instants()[-1]
        timeline = self.path / ".hoodie" / "timeline"
        folder = timeline if timeline.is_dir() else self.path / ".hoodie"
        for file in folder.iterdir():
            name = file.name.removeprefix(".").removesuffix(".crc")
            if name.startswith(last["requested"]) and name.endswith(f".{last['action']}"):
                file.unlink()


def listed(t: OldMaker) -> None:
    """Few writes, because the metadata table beside them is large."""
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1), order(1, 1, at=900), order(4, 1)])
    t.windows = [(-1, None), (0, None)]


def failed(t: OldMaker) -> None:
    """A failed write that the next one rolled back, a commit that a user rolled back."""
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1), order(1, 1)])
    t.put([order(0, 2), order(2, 2), order(9, 2)])
    t.lose_completion()
    t.put([order(1, 3), order(3, 3)])
    t.put([order(0, 4)])
    t.call("rollback_to_instant", instant_time=t.instants()[-1]["requested"])
    t.put([order(2, 5)])
    t.windows = [(-1, None), (0, 1), (1, None)]


def changed(t: OldMaker) -> None:
    """A change stream over inserts, updates, late updates and deletes."""
    t.put([order(i) for i in range(4)], "insert")
    t.put([order(0, 1), order(1, 1, at=900), order(4, 1)])
    t.put([order(2, 2)], "delete")
    t.put([order(8, 3), order(2, 3)])
    t.put([order(6, 4), order(1, 4)])
    t.changes = True
    t.windows = [(0, None), (1, 3)]


def archived(t: OldMaker) -> None:
    """Instants in the archive."""
    RECIPES["archived_mor_v8"][0](t)
    t.windows = [(0, None)]  # of earlier ones 1.0 forgets what logs say


def begun(t: OldMaker) -> None:
    """An archive of version 6 in several files, and logs that are not compacted yet."""
    t.set(
        clean__automatic="true",
        clean__commits__retained="1",
        archive__automatic="true",
        keep__min__commits="2",
        keep__max__commits="3",
        commits__archival__batch="1",
        compact__inline="true",
        compact__inline__max__delta__commits="2",
    )
    t.put([order(i) for i in range(4)])
    t.put([order(0, 1)])
    t.put([order(1, 2)])
    t.lose_completion()
    for rev in range(3, 7):
        t.put([order(2 - rev % 2, rev)])


def gone_on(t: OldMaker) -> None:
    """What a newer release upgraded with its first write, and wrote after it."""
    t.set(clean__automatic="false")
    t.put([order(10, 20), order(7, 20)])
    t.put([order(1, 21)], "delete")
    t.put([order(2, 22), order(3, 22, at=5)])
    t.windows = [(len(t.instants()) - 3, None)]  # of earlier ones 1.0 forgets what logs say


Tables = dict[str, tuple[Callable[..., None], dict[str, str]]]


def _as(name: str, **settings: str) -> tuple[Callable[..., None], dict[str, str]]:
    return RECIPES[name][0], settings


#: By release, in the order in which they run: tables that one begins the next one goes on with.
RELEASES: dict[str, Tables] = {
    "0.15.0": {
        "orders_mor_v6_by_0_15": _as("orders_mor", **MOR),
        "listed_mor_v6_by_0_15": (listed, {**MOR, **WITH_METADATA}),
        "compacted_mor_v6_by_0_15": _as("compacted_mor_v6", **MOR),
        "failed_mor_v6_by_0_15": (failed, {**MOR, **NO_MARKERS}),
        "changes_cow_v6_by_0_15": (changed, _cdc(MODES[1])),
        "upgraded_mor_v8_by_1_0": (begun, {**MOR, **NO_MARKERS}),
    },
    "1.0.2": {
        "archived_mor_v8_by_1_0": (archived, MOR),
        "clustered_mor_v8_by_1_0": _as("clustered_mor", **MOR),
        "failed_mor_v8_by_1_0": (failed, {**MOR, **NO_MARKERS}),
        "merged_partly_mor_v8_by_1_0": _as("merged_partly_mor_v8"),
        "upgraded_mor_v8_by_1_0": (gone_on, MOR),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--release", choices=RELEASES, help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.release:
        make(arguments.release, arguments.jars, arguments.root, arguments.out)
        return
    root = Path(tempfile.mkdtemp(prefix="tables-"))
    for release in RELEASES:  # one JVM holds one Hudi
        again = [sys.executable, __file__, "--release", release, "--root", str(root)]
        places = ["--jars", str(arguments.jars), "--out", str(arguments.out)]
        subprocess.run([*again, *places], check=True)
    shutil.rmtree(root)


def make(release: str, jars: Path, root: Path, out: Path) -> None:
    spark = session(jars / f"{BUNDLE}-{release}.jar")
    for name, (function, settings) in RELEASES[release].items():
        maker = OldMaker(spark, name, root, **settings)
        function(maker)
        if function is begun:
            continue
        described = {"recipe": function.__name__, **maker.describe(release)}
        text = json.dumps(described, indent=1, sort_keys=True, ensure_ascii=False)
        (out / f"{name}.json").write_text(text + "\n")
        pack(maker.path, out / f"{name}.zip")
        size = (out / f"{name}.zip").stat().st_size
        print(f"{name}: {len(described['snapshot'])} rows, {size} bytes", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
