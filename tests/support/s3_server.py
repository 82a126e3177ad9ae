"""A real S3 server process on loopback: moto's server, made atomic and able to fail on request.

Run as a script it prints its port and serves until it is killed. moto honours ``If-None-Match``
and ``If-Match``, but looks and writes in two steps, so that two threads can both be first. The
lock here lets one request in at a time, which is the atomicity that S3 promises. Listings come
in pages of 25, so that few files make many pages.

``PUT /_faults`` with a JSON list sets what happens to the next requests: each entry is
``{"method": "PUT", "key": "part of the path", "how": "...", "times": 1}``, where how is
``drop`` (close the connection before the request is done), ``lose`` (do it, then close the
connection without an answer), ``cut`` (do it, then break off in the middle of the answer),
``hang`` (do it, answer after ``seconds``), or a status code to answer with, without doing it.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LOST = [b""]


class _Faulty:
    """A WSGI application that lets one request at a time through to another, or spoils it."""

    def __init__(self, app) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._faults: list[dict] = []
        self._seen: list[str] = []

    def __call__(self, environ, start_response):
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == "/_faults":
            self._faults = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            self._seen = []
            start_response("204 No Content", [])
            return []
        if path == "/_seen":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self._seen).encode()]
        with self._lock:
            self._seen.append(f"{method} {path}?{environ.get('QUERY_STRING', '')}")
            fault = self._take(method, path)
            how = fault["how"] if fault else None
            if how == "drop":
                return _close(environ)
            if isinstance(how, int):
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start_response(f"{how} Injected", [("Content-Type", "application/xml")])
                return [f"<Error><Code>Injected{how}</Code></Error>".encode()]
            answer: list = []

            def keep(status, headers, exc_info=None):
                answer.extend((status, headers))

            body = b"".join(self._app(environ, keep))
        if how == "lose":
            return _close(environ)
        if how == "hang":
            time.sleep(fault["seconds"])
        start_response(*answer)
        if how == "cut":
            return _cut(environ, body)
        return [body]

    def _take(self, method: str, path: str) -> dict | None:
        for fault in self._faults:
            if fault["times"] > 0 and fault["method"] == method and fault["key"] in path:
                fault["times"] -= 1
                return fault
        return None


def _close(environ) -> list[bytes]:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return _LOST


def _cut(environ, body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)


def main() -> None:
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, type, message, *args) -> None:
            pass

    app = _Faulty(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server: its address, and the options with which our storage reaches it."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key": "test",
            "s3.secret-key": "test",
            "s3.timeout": "10",
        }

    def make_bucket(self, name: str) -> None:
        self._request("PUT", f"/{name}")

    def set_faults(self, *faults: dict) -> None:
        """Spoil the next requests, and forget those that were seen."""
        self._request("PUT", "/_faults", json.dumps([{"times": 1, **f} for f in faults]).encode())

    def seen(self) -> list[str]:
        """Return ``METHOD path?query`` of the requests since the faults were last set."""
        return json.loads(self._request("GET", "/_seen"))

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(
            self.endpoint + path,
            method=method,
            data=body if body is not None or method == "GET" else b"",
            headers={"Host": self.endpoint.removeprefix("http://")},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Start a server process and stop it again."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "MOTO_S3_DEFAULT_MAX_KEYS": "25"},
    )
    try:
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError("the S3 server did not start")
        yield S3Server(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    main()
