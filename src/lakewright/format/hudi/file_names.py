"""Names of base files and log files.

Base: ``<file id>_<write token>_<instant>.<extension>``. Log:
``.<file id>_<instant>.log.<version>_<write token>``, with ``.cdc`` at the end for change files.
Parsing is called once per file of a table, so it does little.
"""

import re

from lakewright.model.files import BaseFile, LogFile

#: Extensions of base files; only parquet ones can be read.
BASE_EXTENSIONS = frozenset({"parquet", "orc", "hfile", "lance"})

_BASE = re.compile(r"([^_.][^_]*)_([^_]*)_([0-9]+)\.([a-z]+)", re.ASCII).fullmatch
_LOG = re.compile(
    r"\.(.+)_([0-9]+)\.log\.([0-9]{1,9})(?:_([0-9]+-[0-9]+-[0-9]+)(\.cdc)?)?", re.ASCII
).fullmatch


def base_file(partition: str, name: str, size: int = -1) -> BaseFile | None:
    """Read the name of a base file; None where it is none."""
    match = _BASE(name)
    if match is None:
        return None
    file_id, token, instant, extension = match.groups()
    if extension not in BASE_EXTENSIONS:
        return None
    return BaseFile(partition, name, file_id, token, instant, size)


def log_file(partition: str, name: str, size: int = -1) -> LogFile | None:
    """Read the name of a log file, change files included; None where it is none."""
    if name[:1] != ".":
        return None
    match = _LOG(name)
    if match is None:
        return None
    file_id, instant, version, token, cdc = match.groups()
    return LogFile(partition, name, file_id, instant, int(version), token or "", bool(cdc), size)


def base_file_name(file_id: str, write_token: str, instant: str, extension: str = "parquet") -> str:
    """Return the name of a base file."""
    return f"{file_id}_{write_token}_{instant}.{extension}"


def log_file_name(
    file_id: str, instant: str, version: int, write_token: str, *, cdc: bool = False
) -> str:
    """Return the name of a log file; the write token is three integers joined by ``-``."""
    token = f"_{write_token}" if write_token else ""
    return f".{file_id}_{instant}.log.{version}{token}{'.cdc' if cdc else ''}"
