"""The setting of fsspec's file systems, readable without the extra that obeys it."""

import json

from lakewright.model.options import declare


def _settings(text: str) -> dict[str, object]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


SETTINGS = declare(
    "fsspec.options",
    _settings,
    dict[str, object](),
    doc="Arguments for the file system, as fsspec's page for that scheme names them.",
    since="0.1",
    allowed='a JSON object, as in {"username": "me"}',
)
