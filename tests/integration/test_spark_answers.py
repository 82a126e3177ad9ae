"""The answers of Spark that are kept are those that it gives."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from golden.make_spark_answers import ANSWERS, answer, query_answer, view
from support.spark_expressions import EXPRESSIONS, QUERIES

pytestmark = pytest.mark.spark

_SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    before = {name: spark.conf.get(name) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    view(spark)
    yield spark
    spark.catalog.dropTempView("t")
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_sample_of_the_kept_answers_is_true(session: Any) -> None:
    kept = json.loads(ANSWERS.read_text())
    if session.version.split(".")[0] != kept["spark"].split(".")[0]:
        pytest.skip("the answers are those of another release of Spark")
    for text in EXPRESSIONS[::25]:
        assert answer(session, text) == kept["expressions"][text], text
    for text in [text for text in QUERIES if "ORDER BY" in text][::12]:
        assert query_answer(session, text) == kept["queries"][text], text
