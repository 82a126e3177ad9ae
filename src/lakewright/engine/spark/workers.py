"""Functions that Spark's Python workers run, as Spark wants them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def in_worker(
    module: str, function: str, *arguments: object
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function of batches that calls a function of a module with arguments and them.

    The module is one of this room, by its last name.
    """
    place = f"{__package__}.{module}"

    # Spark pickles this inner function by value: a worker that lacks the package can still
    # load it, and say what is missing.
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import importlib
        import sys

        try:
            found = importlib.import_module(place)
        except ModuleNotFoundError as cause:
            raise RuntimeError(
                f"Spark's Python worker {sys.executable} cannot import {cause.name}. Install "
                "lakewright for that interpreter on every machine, or point PYSPARK_PYTHON to "
                "one that has it before the Spark session is made."
            ) from cause
        yield from getattr(found, function)(*arguments, batches)

    return run
