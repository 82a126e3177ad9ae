"""Telling of Spark's tasks, by a session that only pretends; real ones are asked elsewhere."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.engine.spark import watching
from lakewright.engine.spark.watching import watched

SOON = 10.0


class Context:
    """A Spark context with jobs: group, status, and tasks done and all by stage."""

    def __init__(self, group: str | None = None) -> None:
        self.properties = {"spark.jobGroup.id": group}
        self.jobs: dict[int, tuple[str | None, str, dict[int, tuple[int, int]]]] = {}
        self.fails = False

    def getLocalProperty(self, key: str) -> str | None:
        return self.properties.get(key)

    def setLocalProperty(self, key: str, value: str | None) -> None:
        self.properties[key] = value

    def statusTracker(self) -> "Context":
        return self

    def getJobIdsForGroup(self, group: str | None) -> list[int]:
        if self.fails:
            raise ConnectionError("the session is gone")
        return [number for number, job in self.jobs.items() if job[0] == group]

    def getJobInfo(self, number: int) -> Any:
        _, status, stages = self.jobs[number]
        return SimpleNamespace(stageIds=[*stages, 999], status=status)

    def getStageInfo(self, number: int) -> Any:
        for _, _, stages in self.jobs.values():
            if number in stages:
                done, known = stages[number]
                return SimpleNamespace(numCompletedTasks=done, numTasks=known)
        return None

    def run(self, number: int, status: str, **stages: tuple[int, int]) -> None:
        group = self.properties["spark.jobGroup.id"]
        self.jobs[number] = (group, status, {int(k[1:]): v for k, v in stages.items()})


class Heard:
    """Waits for what is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        self._news = Event()

    def __call__(self, done: int, known: int) -> None:
        self.told.append((done, known))
        self._news.set()

    def next(self) -> tuple[int, int]:
        assert self._news.wait(SOON)
        self._news.clear()
        return self.told[-1]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PAUSE", 0.01)


def classic(context: Context) -> Any:
    return SimpleNamespace(sparkContext=context)


def test_tasks_are_counted_while_jobs_run() -> None:
    context, heard = Context(), Heard()
    with watched(classic(context), heard):
        context.run(0, "RUNNING", s0=(1, 4), s1=(0, 2))
        assert heard.next() == (1, 6)
        context.run(0, "SUCCEEDED", s0=(4, 4), s1=(0, 2))  # the second stage was skipped
        context.run(1, "RUNNING", s2=(1, 8))
        while heard.told[-1] != (5, 12):
            heard.next()
        with watched(classic(context), Heard()) as _:
            assert context.properties["spark.jobGroup.id"] is not None
    assert context.properties["spark.jobGroup.id"] is None


def test_a_group_of_the_caller_stays_and_its_earlier_jobs_do_not_count() -> None:
    context, heard = Context("mine"), Heard()
    context.run(0, "SUCCEEDED", s0=(9, 9))
    with watched(classic(context), heard):
        context.run(1, "RUNNING", s1=(1, 2))
        assert heard.next() == (1, 2)
    assert context.properties["spark.jobGroup.id"] == "mine"


def test_failures_stay_inside() -> None:
    context, heard = Context(), Heard()
    with watched(classic(context), heard):
        context.fails = True
    with pytest.raises(ValueError, match="the job"), watched(classic(Context()), heard):
        raise ValueError("the job")
    assert heard.told == []
    with watched(classic(Context()), None):
        pass


def test_a_connect_server_reports_by_itself() -> None:
    handlers: list[Any] = []
    session = type(
        "SparkSession",
        (),
        {
            "__module__": "pyspark.sql.connect.session",
            "registerProgressHandler": lambda self, handler: handlers.append(handler),
            "removeProgressHandler": lambda self, handler: handlers.remove(handler),
        },
    )()
    heard = Heard()
    stage = SimpleNamespace(num_tasks=4, num_completed_tasks=1)
    with watched(session, heard):
        handlers[0](stages=None, inflight_tasks=0, operation_id="a", done=False)
        handlers[0](stages=[stage, stage], inflight_tasks=2, operation_id="a", done=False)
        handlers[0](stages=[stage], inflight_tasks=0, operation_id="b", done=True)
    assert heard.told == [(2, 8), (3, 12)]
    assert handlers == []
