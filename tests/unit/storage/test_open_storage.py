"""From a URI to a storage."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakewright.model import extras
from lakewright.model.errors import (
    Invalid,
    InvalidOption,
    InvalidPath,
    MissingExtra,
    Unavailable,
    Unsupported,
)
from lakewright.storage import arrow_fs
from lakewright.storage.local import LocalStorage
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage


def test_local_paths(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path)
    for uri, path in [
        (here, here),
        (here + "/", here),
        (tmp_path / "t", f"{here}/t"),
        ("t", f"{here}/t"),
        ("./t/../u", f"{here}/u"),
        (".", here),
        ("/", "/"),
        ("a:b", f"{here}/a:b"),
        (Path("s3://bucket/t"), f"{here}/s3:/bucket/t"),
        ("file:///data/t", "/data/t"),
        ("file:///data/t/", "/data/t"),
        ("file:/data/t", "/data/t"),
        ("file://localhost/data/t", "/data/t"),
        ("file:///two%20words/%25?#", "/two words/%?#"),
        (tmp_path.joinpath("ü #?%").as_uri(), f"{here}/ü #?%"),
    ]:
        storage = open_storage(uri)
        assert isinstance(storage, LocalStorage)
        assert storage.uri == path
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("uri", ["", "file://elsewhere/t", "file:t", "a\0b", "memory://", "s3://"])
def test_what_names_no_place_is_refused(uri: str):
    with pytest.raises(InvalidPath):
        open_storage(uri)


def test_the_root_folder_of_the_machine_works():
    storage = open_storage("/")
    assert storage.locate("etc/x") == "/etc/x"
    assert "etc" in storage.folders()
    assert storage.read("proc/self/stat")


def test_s3_schemes_keep_their_spelling():
    for scheme in ("s3", "s3a", "s3n"):
        storage = open_storage(f"{scheme}://bucket/a b/t/", {"s3.region": "eu-west-1"})
        assert storage.uri == f"{scheme}://bucket/a b/t"
        assert storage.locate("dt=1/f") == f"{scheme}://bucket/a b/t/dt=1/f"
        assert storage.options == {"s3.region": "eu-west-1"}
    with pytest.raises(InvalidPath):
        open_storage("s3://bucket/../other")


def test_s3_hides_its_secrets():
    storage = open_storage("s3://bucket/t", {"s3.access-key": "AK", "s3.secret-key": "hush"})
    assert "hush" not in repr(storage)


@pytest.mark.parametrize(
    ("key", "value"),
    [("s3.timeout", "0"), ("s3.attempts", "many"), ("s3.path-style", "yes"), ("s3.region", " ")],
)
def test_s3_settings_are_checked(key: str, value: str):
    with pytest.raises(InvalidOption, match=key):
        open_storage("s3://bucket/t", {key: value}).stat("f")


def test_a_missing_extra_names_the_line_that_installs_it(monkeypatch):
    real = extras.importlib.import_module

    def absent(name: str):
        if name in {"boto3", "fsspec"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name)

    monkeypatch.setattr(extras.importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"pip install 'lakewright\[s3\]'"):
        open_storage("s3://bucket/t")
    with pytest.raises(MissingExtra, match=r"pip install 'lakewright\[fsspec\]'"):
        open_storage("sftp://host/t")


def test_schemes_that_nobody_knows_are_refused():
    with pytest.raises(Invalid, match="nonsense"):
        open_storage("nonsense://host/t")


def test_settings_of_fsspec_are_json(tmp_path: Path):
    storage = open_storage(f"fsspec+file://{tmp_path}", {"fsspec.options": '{"auto_mkdir": true}'})
    storage.write("a/f", b"x")
    assert (tmp_path / "a/f").read_bytes() == b"x"
    assert storage.locate("a/f") == f"file://{tmp_path}/a/f"
    for text in ("[]", "nonsense", '"x"'):
        with pytest.raises(InvalidOption):
            open_storage(f"fsspec+file://{tmp_path}", {"fsspec.options": text})


def test_arrow_schemes_need_no_extra():
    storage = open_storage(
        "gs://bucket/t/", {"arrow.parameters": "scheme=http&endpoint_override=127.0.0.1:9"}
    )
    assert storage.uri == "gs://bucket/t"
    assert storage.locate("f") == "gs://bucket/t/f"
    assert storage.can_create_atomically is False


def test_arrow_parameters_are_checked():
    with pytest.raises(Invalid, match="nonsense"):
        open_storage("gs://bucket/t", {"arrow.parameters": "nonsense=1"})


def test_memory_is_shared_by_name_and_nested():
    lake = open_storage("memory://test-open-nested")
    open_storage("memory://test-open-nested/shop/orders/").write("f", b"x")
    assert lake.read("shop/orders/f") == b"x"
    assert list(lake.folders("shop")) == ["shop/orders"]
    lake.delete(["shop/orders/f"])
    assert list(lake.folders()) == []


def test_memory_of_another_process_is_refused():
    pickled = pickle.dumps(MemoryStorage("memory://test-other-process"))
    script = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    found = subprocess.run(
        [sys.executable, "-c", script], input=pickled, capture_output=True, check=False
    )
    assert found.returncode == 1
    assert Unsupported.__name__.encode() in found.stderr
    assert str(os.getpid()).encode() in found.stderr


def test_opening_imports_only_what_it_needs():
    script = (
        "import sys; from lakewright.storage.open import open_storage; open_storage('memory://x');"
        "from lakewright.storage import s3_options, fsspec_options;"
        "print([m for m in ('boto3', 'fsspec', 'pyarrow') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("", "gs://b/t?retry_limit_seconds=60"),
        ("scheme=http", "gs://b/t?scheme=http&retry_limit_seconds=60"),
        ("retry_limit_seconds=5", "gs://b/t?retry_limit_seconds=5"),
    ],
)
def test_google_is_not_asked_for_a_quarter_of_an_hour(
    given: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class FileSystem:
        @staticmethod
        def from_uri(uri: str) -> None:
            seen.append(uri)
            raise OSError("nobody is there")

    monkeypatch.setattr(arrow_fs, "arrow_files", SimpleNamespace(FileSystem=FileSystem))
    with pytest.raises(Unavailable, match=r"nobody is there\. Check the address"):
        arrow_fs.open_arrow("gs://b/t", {"arrow.parameters": given})
    assert seen == [asked]
