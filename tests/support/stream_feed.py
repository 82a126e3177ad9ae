"""A stream of rows out of files, and the query that writes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakewright as lw

SCHEMA = "id string, n bigint, ts bigint"


class Feed:
    """A folder of JSON lines as a streaming source, and a query that writes it to a table."""

    def __init__(self, spark: Any, table: lw.Table, folder: Path) -> None:
        self._spark = spark
        self.table = table
        self.checkpoint = folder / "checkpoint"
        self._input = folder / "input"
        self._input.mkdir()
        self._files = 0

    def put(self, *rows: tuple[str | None, int, int]) -> "Feed":
        """Add a file of rows."""
        lines = (json.dumps(dict(zip(("id", "n", "ts"), row, strict=True))) for row in rows)
        self._files += 1
        aside = self._input.parent / f"{self._files}.json"
        aside.write_text("\n".join(lines))
        aside.rename(self._input / aside.name)
        return self

    def run(self, sink: Callable[[Any], Any]) -> None:
        """Write all there is, as one batch; ``sink`` says how."""
        frame = self._spark.readStream.schema(SCHEMA).json(str(self._input))
        writer = sink(frame.writeStream).option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(600)
        finally:
            query.stop()

    def forget_commit(self, batch: int) -> None:
        """Let Spark believe that it died after the sink's commit and before its own."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink()

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.table.scan(columns=["id", "n"]).to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in found)
