"""The progress port: what a write says of itself while it runs."""

from typing import Protocol


class Progress(Protocol):
    """Is told how far a write has come; it must not fail and must not be slow."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin a stage of ``total`` steps, None where their number is not known."""
        ...

    def advance(self, done: int = 1, *, rows: int = 0, files: int = 0) -> None:
        """Count steps of the stage, and the rows and files that they wrote."""
        ...

    def close(self) -> None:
        """End: the write is over, well or not."""
        ...


class Silence:
    """Progress that nobody watches."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Say nothing."""

    def advance(self, done: int = 1, *, rows: int = 0, files: int = 0) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Say nothing."""
