"""All procedures: the modules that declare them are loaded here."""

from collections.abc import Iterator
from importlib import import_module

from lakewright.interfaces.sql.procedures.registry import REGISTRY, Procedure

#: Modules whose import declares procedures.
_MODULES = (
    "reading",
    "commits",
    "services",
    "clustering",
    "cleans",
    "going_back",
    "upgrading",
    "buckets",
    "ttl",
    "orphans",
)


def all_procedures() -> Iterator[Procedure]:
    """Return every procedure, by name."""
    _load()
    return iter(REGISTRY)


def find_procedure(name: str) -> Procedure:
    """Return the procedure of a name; ``NotFound`` names the nearest ones."""
    _load()
    return REGISTRY.find(name)


def _load() -> None:
    for module in _MODULES:
        import_module(f"lakewright.interfaces.sql.procedures.{module}")
