"""What ``df.write.format("lakewright")`` and its stream are asked to do, checked first of all."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.actions.write.agreement import OPERATION
from lakewright.actions.write.staging import STAGED_BYTES
from lakewright.interfaces.spark_source.options import count, given
from lakewright.model.errors import InvalidOption
from lakewright.model.writing import Operation
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage

_KNOWN = ("path", "operation", "retry")
#: Options that Spark puts in itself.
_SPARKS = frozenset({"checkpointlocation", "queryname"})
_PREFIXES = ("hoodie.", "lakewright.")
_APPENDING = {
    "insert": Operation.INSERT,
    "bulk_insert": Operation.BULK_INSERT,
    "upsert": Operation.UPSERT,
    "delete": Operation.DELETE,
}
_OVERWRITING = {
    "insert_overwrite_table": Operation.INSERT_OVERWRITE_TABLE,
    "insert_overwrite": Operation.INSERT_OVERWRITE,
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where and how rows are written; ``settings`` are the options of the write itself."""

    path: str
    storage: Mapping[str, str] = field(repr=False)
    operation: Operation
    settings: Mapping[str, str]
    retry: int
    staged_bytes: int

    @staticmethod
    def of(
        options: Mapping[str, str], *, overwrite: bool, append: str = "bulk_insert"
    ) -> "WriteOptions":
        """Read and check the options; nothing is looked at and nothing is written.

        ``overwrite`` is Spark's mode; ``append`` is what the other one does by default.
        """
        asked = {k: v for k, v in options.items() if k.lower() not in _SPARKS}
        example = 'df.write.format("lakewright").mode("append").save(path)'
        told = given(asked, _KNOWN, prefixes=_PREFIXES, example=example)
        settings = {k: v for k, v in told.own.items() if k.startswith(_PREFIXES)}
        return WriteOptions(
            path=told.path,
            storage=told.storage,
            operation=_operation(told.own, append, overwrite=overwrite),
            settings=settings,
            retry=count(told.own, "retry") or 0,
            staged_bytes=STAGED_BYTES.read(settings),
        )

    def open_storage(self) -> Storage:
        """Open the storage of the table."""
        return open_storage(self.path, self.storage)


def _operation(own: Mapping[str, str], append: str, *, overwrite: bool) -> Operation:
    default = "insert_overwrite_table" if overwrite else append
    allowed = _OVERWRITING if overwrite else _APPENDING
    # Hudi's own name for it: pipelines that wrote with Hudi carry it along.
    told = own.get("operation", own.get(OPERATION, default)).strip().lower()
    if told in allowed:
        return allowed[told]
    mode = "overwrite" if overwrite else "append"
    other = "append" if overwrite else "overwrite"
    hint = f" {told} goes with mode {other}." if told in {**_APPENDING, **_OVERWRITING} else ""
    raise InvalidOption(
        f"operation {told!r} is not known in mode {mode}.{hint}",
        next_step=f"Allowed: {', '.join(allowed)}.",
        option="operation",
        value=told,
    )
