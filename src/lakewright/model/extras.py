"""Optional packages: a missing one is answered with the line that installs it."""

import importlib
from types import ModuleType

from lakewright.model.errors import MissingExtra


def load_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional package; ``MissingExtra`` with the ``pip install`` line where absent."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as cause:
        if cause.name != module.partition(".")[0]:
            raise  # the package is there, but something that it needs is not
        raise MissingExtra(
            f"{purpose} needs the package {module.partition('.')[0]!r}, which is not installed.",
            next_step=f"Run: pip install 'lakewright[{extra}]'",
            package=module,
            extra=extra,
        ) from cause
