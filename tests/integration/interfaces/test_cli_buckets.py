"""The commands of buckets: what they print, in every form, and that plans change nothing."""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.interfaces.cli import main
from lakewright.model.errors import Invalid

DAYS = ("2026-11-10", "2026-11-11", "2026-11-12")


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, ("buckets", *arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def told(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, "-o", "json", code=code))


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    made = lw.create_table(
        tmp_path / "t", schema="id int, n int, dt string", key="id", partition_by="dt", buckets=4
    )
    made.upsert([{"id": i, "n": i, "dt": DAYS[i % 3]} for i in range(60)])
    return made


def numbers(table: lw.Table) -> dict[str, int]:
    return {one.partition[3:]: one.buckets for one in table.buckets.show().partitions}


def rows(table: lw.Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.scan().to_arrow().sort_by("id").to_pylist()
    return found


def test_the_whole_way_from_rules_to_rescale_and_back(table: lw.Table, tmp_path: Path) -> None:
    before = rows(table)
    path = table.path
    assert "one number for all" in run("show", path)
    done = told("set", path, "11-11,8", "--default", "2")
    assert (done["pinned"], done["changed"]) == (3, True)
    shown = told("show", path)
    assert {
        one["partition"]: (one["buckets"], one["by"], one["wanted"]) for one in shown["partitions"]
    } == {
        "dt=2026-11-10": (4, "pinned", 2),
        "dt=2026-11-11": (4, "pinned", 8),
        "dt=2026-11-12": (4, "pinned", 2),
    }
    assert shown["version"] == done["instant"]
    planned = run("plan", path, "--partition", "dt=2026-11-11")
    last = planned.strip().splitlines()[-1]
    assert last == f"lakewright buckets rescale {path} --partition dt=2026-11-11 --apply"
    text = run("rescale", path, "--partition", "dt=2026-11-11")
    assert text.startswith("this is a plan: nothing is changed")
    assert numbers(table)["2026-11-11"] == 4
    made = told("rescale", path, "--partition", "dt=2026-11-11", "--apply")
    assert (made["rows"], list(made["partitions"])) == (20, ["dt=2026-11-11"])
    assert numbers(table) == {"2026-11-10": 4, "2026-11-11": 8, "2026-11-12": 4}
    file = tmp_path / "rules.json"
    file.write_text('{"expressions": [], "defaultBucketNumber": 16}')
    assert "3 partitions" in run("rescale", path, "--rules", f"@{file}", "--apply")
    assert set(numbers(table).values()) == {16}
    assert told("undo", path)["rolled_back"]
    assert set(numbers(table).values()) == {16}
    run("undo", path, "--steps", "2", "--apply")
    assert set(numbers(table).values()) == {4}
    assert rows(table) == before
    assert "sound" in run("check", path)


def test_plans_for_programs(table: lw.Table) -> None:
    run("set", table.path, "8")
    items = told("plan", table.path)["items"]
    assert [(i["partition"], i["before"], i["after"]) for i in items] == [
        (f"dt={day}", 4, 8) for day in DAYS
    ]
    found = list(csv.DictReader(io.StringIO(run("rescale", table.path, "-o", "csv"))))
    assert [row["after"] for row in found] == ["8", "8", "8"]
    assert set(numbers(table).values()) == {4}


def test_advice_in_every_form(table: lw.Table) -> None:
    text = run("advise", table.path, "--target-bytes", "1")
    assert "1024 is the most" in text and "████" in text
    assert '"defaultBucketNumber": 1024' in text
    advice = told("advise", table.path, "--target-bytes", "100000000", "--most", "8")
    assert {one["advised"] for one in advice["partitions"]} == {1}
    assert advice["rules"] == {"expressions": [], "defaultBucketNumber": 1}
    (first, *_) = csv.DictReader(io.StringIO(run("advise", table.path, "-o", "csv")))
    assert first["partition"] == "dt=2026-11-10"
    run("set", table.path, json.dumps(advice["rules"]))  # what it emits is what set takes
    assert table.buckets.rules.default == 1


def test_damage_is_found_and_mended(table: lw.Table) -> None:
    before = rows(table)
    folder = Path(table.path) / f"dt={DAYS[0]}"
    file = next(f for f in sorted(folder.iterdir()) if f.name.startswith("00000002-"))
    shutil.copy(
        file, folder / re.sub(r"^[^_]+", "00000002-aaaa-4aaa-8aaa-aaaaaaaaaaaa-0", file.name)
    )
    found = told("check", table.path, code=2)
    assert [p["code"] for p in found["problems"]] == ["bucket-twice"]
    assert "bucket-twice" in run("check", table.path, "--names-only", code=2)
    text = run("repair", table.path)
    assert "1 groups too many" in text and text.strip().endswith("--apply")
    assert told("repair", table.path)["items"][0]["mended"] == 1
    assert not table.buckets.check().ok
    assert told("repair", table.path, "--apply")["partitions"] == 1
    assert "sound" in run("check", table.path)
    assert "nothing to mend" in run("repair", table.path, "--apply")
    assert rows(table) == before


def test_rules_that_cannot_be_read_are_refused(table: lw.Table) -> None:
    with pytest.raises(Invalid, match="cannot be read from"):
        run("set", table.path, "@nowhere.json")
    with pytest.raises(Invalid, match="no number of buckets"):
        run("set", table.path, "11,x")


def test_a_table_without_buckets_says_so(tmp_path: Path) -> None:
    plain = lw.create_table(tmp_path / "p", schema="id int", key="id")
    with pytest.raises(Invalid, match="has no buckets"):
        run("show", plain.path)
