"""From a URI to the storage behind it; adapters are imported only when they are asked for."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from lakewright.model.errors import InvalidPath
from lakewright.model.extras import load_extra
from lakewright.model.options import check_options
from lakewright.storage.port import Storage

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
_ARROW_SCHEMES = frozenset({"gs", "gcs", "hdfs", "viewfs", "abfs", "abfss"})


def open_storage(
    uri: str | os.PathLike[str], options: Mapping[str, str] = MappingProxyType({})
) -> Storage:
    """Return the storage whose root is ``uri``; nothing is read and nothing need exist yet.

    ==========================================  =============================================
    ``/data/t``, ``./t``, ``file:///data/t``    local files
    ``memory://name/t``                         memory of this process
    ``s3://bucket/t``, ``s3a://``, ``s3n://``   S3 and compatible stores (extra ``s3``)
    ``gs://``, ``hdfs://``, ``abfs(s)://``      pyarrow's file systems
    ``fsspec+proto://``, any other scheme       fsspec's file systems (extra ``fsspec``)
    ==========================================  =============================================
    """
    text = _text(uri)
    if not text:
        raise InvalidPath("The path is empty.", next_step="Give a folder or a URI.")
    check_options(options)
    if text.startswith("file:"):
        return _local(_path_of_file_uri(text), options)
    found = _SCHEME.match(text)
    if found is None or not isinstance(uri, str):
        return _local(text, options)
    scheme = found.group(1).lower()
    if scheme == "memory":
        from lakewright.storage.memory import MemoryStorage

        return MemoryStorage(text, options)
    if scheme in {"s3", "s3a", "s3n"}:
        load_extra("boto3", "s3", "Storage on S3")
        from lakewright.storage.s3 import S3Storage

        return S3Storage(text, options)
    if scheme in _ARROW_SCHEMES:
        from lakewright.storage.arrow_fs import open_arrow

        return open_arrow(text, options)
    load_extra("fsspec", "fsspec", f"Storage under {scheme}://")
    from lakewright.storage.fsspec_fs import open_fsspec

    return open_fsspec(text, options)


def _text(uri: object) -> str:
    """Return the path as text; callers without a type checker may give anything."""
    text = os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    if isinstance(text, str):
        return text
    raise InvalidPath(
        f"{uri!r} is no path but a value of type {type(uri).__name__}.",
        next_step="Give a text or a pathlib.Path.",
    )


def cached_storage(uri: str, options: Mapping[str, str]) -> Storage:
    """Return the storage of ``open_storage``, opened once per process: for tasks."""
    return _cached(uri, tuple(sorted(options.items())))


@lru_cache(maxsize=64)
def _cached(uri: str, options: tuple[tuple[str, str], ...]) -> Storage:
    return open_storage(uri, dict(options))


def _local(path: str, options: Mapping[str, str]) -> Storage:
    from lakewright.storage.local import LocalStorage

    if "\0" in path:
        raise InvalidPath(
            f"The path {path!r} holds a NUL character.", next_step="Leave it out.", path=path
        )
    return LocalStorage(os.path.abspath(path), dict(options))  # noqa: PTH100  (folds "..")


def _path_of_file_uri(uri: str) -> str:
    """Return the path of ``file:///p``, ``file://localhost/p`` or Hadoop's ``file:/p``."""
    parts = urlsplit(uri, allow_fragments=False)
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise InvalidPath(
            f"{uri!r} names no absolute path of this machine.",
            next_step="Write it as file:///folder/table.",
            uri=uri,
        )
    query = f"?{parts.query}" if parts.query else ""
    return unquote(parts.path + query)
