"""Values that are worked out once, by each object on its own."""

import threading
from dataclasses import dataclass

from lakewright.model.lazy import lazy


@dataclass(frozen=True)
class Source:
    name: str
    asked: list[str]
    other: "Source | None" = None

    @lazy
    def value(self) -> str:
        """The name, in capitals."""
        self.asked.append(self.name)
        if self.other is not None:
            other = self.other
            reader = threading.Thread(target=lambda: other.value, daemon=True)
            reader.start()
            reader.join(timeout=10)
            assert not reader.is_alive(), "one object waits for another"
        return self.name.upper()


def test_worked_out_once() -> None:
    source = Source("a", [])
    assert (source.value, source.value, source.asked) == ("A", "A", ["a"])
    assert Source.value.__doc__ == "The name, in capitals."


def test_objects_do_not_wait_for_each_other() -> None:
    asked: list[str] = []
    assert Source("a", asked, Source("b", asked)).value == "A"
    assert asked == ["a", "b"]
