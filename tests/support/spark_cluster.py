"""A standalone Spark master and two workers from the pip package, on two host names."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

HOSTS = ("127.0.0.1", "127.0.0.2")
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_PATIENCE = 90


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the address of its master, and its worker daemons."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def cluster(folder: Path, *, cores: int = 1) -> Iterator[Cluster]:
    """Start the daemons and end them; each worker has its own host name.

    Spark places the copy of a slow task on another host only.
    """
    with ExitStack() as stack:
        master, log = _daemon(folder, "master", "master.Master", "--host", HOSTS[0], "--port", "0")
        stack.callback(_end, master)
        url = _await(log, master, _URL)
        workers = []
        for number, host in enumerate(HOSTS):
            arguments = ("--host", host, "--cores", str(cores), "--memory", "1g")
            work = ("--work-dir", str(folder / f"work{number}"), "--webui-port", "0", url)
            name = f"worker{number}"
            daemon, log = _daemon(folder, name, "worker.Worker", *arguments, *work)
            stack.callback(_end, daemon)
            workers.append(daemon)
            _await(log, daemon, re.compile(f"({_REGISTERED})"))
        yield Cluster(url, tuple(workers))


def _daemon(folder: Path, name: str, kind: str, *more: str) -> tuple[subprocess.Popen[bytes], Path]:
    home = Path(pyspark.__file__).parent
    log = folder / f"{name}.log"
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *more]
    if kind.startswith("master"):
        command += ["--webui-port", "0"]
    with log.open("wb") as sink:
        daemon = subprocess.Popen(
            command, stdout=sink, stderr=subprocess.STDOUT, env=environment(folder)
        )
    return daemon, log


def environment(folder: Path) -> Mapping[str, str]:
    """Return what the daemons and drivers of a cluster need to find this environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    quick = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return {
        **kept,
        "SPARK_SUBMIT_OPTS": quick,
        "SPARK_DAEMON_JAVA_OPTS": quick,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
        ),
    }


def _await(log: Path, daemon: subprocess.Popen[bytes], wanted: re.Pattern[str]) -> str:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        text = log.read_text(errors="replace")
        if found := wanted.search(text):
            return found.group(1)
        assert daemon.poll() is None, text[-2000:]
        time.sleep(0.1)
    raise AssertionError(f"not within {_PATIENCE} s: {wanted.pattern}\n{log.read_text()[-2000:]}")


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
