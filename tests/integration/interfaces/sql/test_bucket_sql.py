"""Bucket rules by SQL: created, altered, shown, overwritten, and managed by Hudi's procedure."""

import json
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.api.lake import Lake
from lakewright.interfaces.sql.read import read_statement
from lakewright.interfaces.sql.rule_texts import rules_text
from lakewright.interfaces.sql.statements import AlterTable, Call, SetProperties

RULES = "hoodie.bucket.index.partition.expressions"
#: The example of the specification, as it is written there.
SEED = (
    r'{"expressions":[{"expression":"\\d{4}-(06-(01|17|18)|11-(01|10|11))","bucketNumber":256,'
    r'"rule":"regex"}],"defaultBucketNumber":10}'
)
DAYS = ("2026-11-10", "2026-11-11", "2026-11-12")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lw.connect(tmp_path)
    found.sql(
        "CREATE TABLE shop.t (id BIGINT, name STRING, price DOUBLE, dt STRING) USING hudi "
        "PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', 'table.type' = 'MERGE_ON_READ', "
        f"'index.type' = 'BUCKET', '{RULES}' = '{SEED}')"
    )
    values = ", ".join(f"({n}, 'n{n}', {n}.5, '{DAYS[n % 3]}')" for n in range(30))
    found.sql(f"INSERT INTO shop.t VALUES {values}")
    return found


def numbers(lake: Lake) -> dict[str, int]:
    return {
        one.partition[3:]: one.buckets for one in lake.table("shop.t").buckets.show().partitions
    }


def answer(lake: Lake, text: str) -> list[dict[str, Any]]:
    found: Any = lake.sql(text)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def contents(lake: Lake) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.table("shop.t").scan().to_arrow().sort_by("id").to_pylist()
    return rows


def sound(lake: Lake) -> None:
    report = lake.table("shop.t").buckets.check()
    assert report.ok, str(report)
    assert report.checked["rows"] == 30


def test_the_example_of_the_specification_is_created_as_it_is_written(lake: Lake) -> None:
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 256, "2026-11-12": 10}
    rules = lake.table("shop.t").buckets.rules
    assert rules.rules[0].expression == r"\d{4}-(06-(01|17|18)|11-(01|10|11))"
    assert rules.default == 10
    sound(lake)


@pytest.mark.parametrize("form", ["SET", "SET TBLPROPERTIES"])
def test_rules_are_altered_and_partitions_keep_their_numbers(lake: Lake, form: str) -> None:
    (told,) = answer(lake, f"ALTER TABLE shop.t {form} ('{RULES}' = '11-1[01],4')")
    assert "2 partitions keep their number" in told["result"]
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 256, "2026-11-12": 10}
    lake.sql("INSERT INTO shop.t VALUES (100, 'x', 1.0, '2026-12-01')")
    assert numbers(lake)["2026-12-01"] == 10  # the default stays where a text has none
    lake.sql(
        f"ALTER TABLE shop.t {form} ('{RULES}' = '12-,8', 'hoodie.bucket.index.num.buckets' = '2')"
    )
    lake.sql(
        "INSERT INTO shop.t VALUES (101, 'x', 1.0, '2026-12-02'), (102, 'y', 1., '2027-01-01')"
    )
    assert (numbers(lake)["2026-12-02"], numbers(lake)["2027-01-01"]) == (8, 2)


def test_other_properties_may_be_set_beside_rules(lake: Lake) -> None:
    lake.sql(f"ALTER TABLE shop.t SET ('{RULES}' = '4', 'hoodie.clean.automatic' = 'true')")
    table = lake.table("shop.t")
    assert table.definition.properties["hoodie.clean.automatic"] == "true"
    assert (table.buckets.rules.rules, table.buckets.rules.default) == ((), 4)
    assert RULES not in table.definition.properties


def test_rules_cannot_be_removed(lake: Lake) -> None:
    with pytest.raises(lw.Invalid, match="cannot be removed"):
        lake.sql(f"ALTER TABLE shop.t UNSET TBLPROPERTIES ('{RULES}')")


def test_the_short_form_sets_other_properties_too(lake: Lake) -> None:
    lake.sql("ALTER TABLE shop.t SET ('hoodie.clean.commits.retained' = '3')")
    assert lake.table("shop.t").definition.properties["hoodie.clean.commits.retained"] == "3"


def test_a_table_is_created_again_by_what_show_create_says(lake: Lake) -> None:
    (made,) = answer(lake, "SHOW CREATE TABLE shop.t")
    lake.sql(made["createtab_stmt"].replace("`shop`.`t`", "shop.u"))
    assert lake.table("shop.u").buckets.rules == lake.table("shop.t").buckets.rules
    (told,) = answer(lake, f"SHOW TBLPROPERTIES shop.t ('{RULES}')")
    assert json.loads(told["value"])["defaultBucketNumber"] == 10
    described = {row["col_name"]: row["data_type"] for row in answer(lake, "DESC EXTENDED shop.t")}
    assert described["Bucket Rules"] == "00000000000000"
    assert described["Buckets"].endswith("-> 256; default -> 10")


# ------------------------------------------------------------- INSERT OVERWRITE


def test_overwriting_partitions_by_their_own_rows_rescales_them(lake: Lake) -> None:
    before = contents(lake)
    lake.sql(f"ALTER TABLE shop.t SET ('{RULES}' = '11-1.,4')")
    (done,) = answer(
        lake, "INSERT OVERWRITE shop.t PARTITION (dt) SELECT * FROM shop.t WHERE dt = '2026-11-11'"
    )
    assert (done["operation"], done["inserted"]) == ("INSERT_OVERWRITE", 10)
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 4, "2026-11-12": 10}
    lake.sql(
        "INSERT OVERWRITE TABLE shop.t PARTITION (dt = '2026-11-12') "
        "SELECT id, name, price FROM shop.t WHERE dt = '2026-11-12'"
    )
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 4, "2026-11-12": 4}
    lake.sql("INSERT OVERWRITE shop.t SELECT * FROM shop.t")
    assert set(numbers(lake).values()) == {4}
    assert contents(lake) == before
    sound(lake)


@pytest.mark.parametrize(
    "statement",
    [
        # Rows of another partition, other values, fewer rows, other columns: all change the table.
        "INSERT OVERWRITE shop.t PARTITION (dt = '2026-11-11') "
        "SELECT id, name, price FROM shop.t WHERE dt = '2026-11-12'",
        "INSERT OVERWRITE shop.t PARTITION (dt) "
        "SELECT id, name, price + 1, dt FROM shop.t WHERE dt = '2026-11-11'",
        "INSERT OVERWRITE shop.t PARTITION (dt) SELECT * FROM shop.t WHERE id < 5",
        "INSERT OVERWRITE shop.t PARTITION (dt) "
        "SELECT * FROM shop.t WHERE dt = '2026-11-11' LIMIT 3",
        "INSERT OVERWRITE shop.t SELECT * FROM shop.t WHERE dt = '2026-11-11'",
    ],
)
def test_any_other_overwrite_is_what_it_says_and_keeps_numbers(lake: Lake, statement: str) -> None:
    before = contents(lake)
    lake.sql(f"ALTER TABLE shop.t SET ('{RULES}' = '11-1.,4')")
    lake.sql(statement)
    assert contents(lake) != before
    assert numbers(lake).get("2026-11-11", 256) == 256
    assert lake.table("shop.t").buckets.check().ok


# ------------------------------------------------------------------- procedures


def managed(lake: Lake, arguments: str) -> tuple[str, str, str]:
    (row,) = answer(lake, f"CALL partition_bucket_index_manager(table => 'shop.t', {arguments})")
    return row["result"], row["operation"], row["details"]


def test_overwrite_plans_by_default_and_rescales_when_told(lake: Lake) -> None:
    before, now = contents(lake), numbers(lake)
    wanted = "overwrite => '11-1[01],8', bucket_number => 10"
    assert managed(lake, wanted) == (
        "SUCCESS",
        "DRY_RUN_OVERWRITE",
        "\ndt=2026-11-10 => 8\n;\ndt=2026-11-11 => 8\n",
    )
    assert numbers(lake) == now
    result, operation, details = managed(lake, f"{wanted}, dry_run => false")
    assert (result, operation) == ("SUCCESS", "OVERWRITE")
    assert "2 partitions" in details
    assert numbers(lake) == {"2026-11-10": 8, "2026-11-11": 8, "2026-11-12": 10}
    assert contents(lake) == before
    sound(lake)


def test_another_default_moves_the_rest(lake: Lake) -> None:
    managed(lake, "overwrite => '11-1[01],256', bucket_number => 5, dry_run => false")
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 256, "2026-11-12": 5}
    managed(lake, "overwrite => '11-1[01],256', bucket_number => 6, dry_run => false")
    assert numbers(lake)["2026-11-12"] == 6
    sound(lake)


def test_add_puts_rules_in_front(lake: Lake) -> None:
    managed(lake, "add => '11-11,16', dry_run => false")
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 16, "2026-11-12": 10}
    rules = lake.table("shop.t").buckets.rules
    assert [rule.buckets for rule in rules.rules] == [16, 256]
    assert rules.default == 10
    sound(lake)


def test_rollback_takes_a_rescale_back_and_shows_so_first_when_asked(lake: Lake) -> None:
    before = contents(lake)
    managed(lake, "overwrite => '11-1.,4', dry_run => false")
    managed(lake, "add => '11-11,16', dry_run => false")
    newest, middle, _ = (v.instant for v in lake.table("shop.t").buckets.versions())
    result, operation, details = managed(lake, f"rollback => '{newest}', dry_run => true")
    assert (result, operation) == ("SUCCESS", "DRY_RUN_ROLLBACK") and middle in details
    assert numbers(lake)["2026-11-11"] == 16
    assert managed(lake, f"rollback => '{newest}'")[:2] == ("SUCCESS", "ROLLBACK")
    assert numbers(lake) == {"2026-11-10": 4, "2026-11-11": 4, "2026-11-12": 4}
    managed(lake, f"rollback => '{middle}'")
    assert numbers(lake) == {"2026-11-10": 256, "2026-11-11": 256, "2026-11-12": 10}
    assert contents(lake) == before
    sound(lake)
    with pytest.raises(lw.Invalid, match="no rules were set at 1"):
        managed(lake, "rollback => '1'")
    with pytest.raises(lw.Invalid, match="are the first"):
        managed(lake, "rollback => '00000000000000'")


def test_the_order_of_precedence_is_hudis(lake: Lake) -> None:
    both = "show_config => true, overwrite => '.,1', add => '.,2', dry_run => false"
    assert managed(lake, both)[1] == "SHOW_CONFIG"
    assert managed(lake, "overwrite => '11-1.,1', add => '11-1.,2'")[2].endswith("=> 1\n")
    assert managed(lake, "dry_run => true")[:2] == ("ERROR", "INVALID_OPERATION")
    with pytest.raises(lw.InvalidOption, match=r"rule\.type"):
        managed(lake, "overwrite => '.,1', rule => 'magic'")


def test_configs_are_shown_as_hudi_shows_them(lake: Lake) -> None:
    managed(lake, r"overwrite => '\\d-1.,4', bucket_number => 8, dry_run => false")
    shown = managed(lake, "show_config => true")[2].split(";P")
    assert len(shown) == 2
    newest = lake.table("shop.t").buckets.version
    expressions = lake.table("shop.t").buckets.versions()[0].config.expressions
    assert expressions.startswith(r"\d-1.,4")
    assert f"P{shown[1]}" == (
        f"PartitionBucketIndexHashingConfig{{expressions='{expressions}', "
        f"defaultBucketNumber='8', rule='regex', version='1', instant={newest}}}"
    )
    rows = answer(lake, "CALL show_bucket_config('shop.t')")
    assert [(row["instant"], row["current"]) for row in rows] == [
        (newest, True),
        ("00000000000000", False),
    ]
    assert json.loads(rows[1]["rules"])["defaultBucketNumber"] == 10


def test_buckets_are_shown_advised_checked_and_repaired(lake: Lake) -> None:
    rows = answer(lake, "CALL show_buckets('shop.t')")
    assert [(row["partition"], row["buckets"]) for row in rows] == [
        ("dt=2026-11-10", 256),
        ("dt=2026-11-11", 256),
        ("dt=2026-11-12", 10),
    ]
    advice = answer(lake, "CALL advise_buckets('shop.t', target_bytes => 100000000)")
    assert {row["advised"] for row in advice} == {1}
    assert json.loads(advice[0]["rules"]) == {"expressions": [], "defaultBucketNumber": 1}
    assert answer(lake, "CALL check_buckets('shop.t')") == []
    assert answer(lake, "CALL repair_buckets('shop.t')") == []


# ------------------------------------------------------------------ backslashes


@pytest.mark.parametrize(
    "text",
    [
        rf"ALTER TABLE t SET ('{RULES}' = '\d{{4}},8')",
        rf"ALTER TABLE t SET TBLPROPERTIES ('{RULES}' = '\\\d,8')",
        r"CALL partition_bucket_index_manager(table => 't', add => 'a\.b,4')",
    ],
)
def test_a_backslash_that_sql_takes_away_is_not_lost_silently(text: str) -> None:
    with pytest.raises(lw.Invalid, match="would lose a backslash"):
        read_statement(text)


def test_backslashes_that_are_doubled_or_raw_stay() -> None:
    for written in (r"'\\d,8'", r"r'\d,8'"):
        read = read_statement(f"ALTER TABLE t SET ('{RULES}' = {written})")
        assert read == AlterTable("t", SetProperties({RULES: r"\d,8"}))
    called = read_statement(r"CALL partition_bucket_index_manager('t', add => 'a\\.b,4')")
    assert called == Call("partition_bucket_index_manager", ("t",), {"add": r"a\.b,4"})


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        (r'{"e": "\d+\.x"}', r"\d+\.x"),
        (r'{"e": "\\d+\\.x"}', r"\d+\.x"),
        (r'{"e": "\bx"}', r"\bx"),
        (r'{"e": "a\"\u00e9"}', 'a"é'),
    ],
)
def test_backslashes_within_json_mean_what_they_can_mean(text: str, expression: str) -> None:
    assert json.loads(rules_text(text)) == {"e": expression}
