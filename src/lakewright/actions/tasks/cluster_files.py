"""New file groups of a clustering: their names, markers and write stats."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_files import in_partition, new_file
from lakewright.actions.tasks.write_new import NO_COMMIT
from lakewright.actions.tasks.write_sizing import new_file_id
from lakewright.format.hudi.bucket_hash import bucket_file_id
from lakewright.format.hudi.file_names import base_file_name
from lakewright.format.hudi.metadata.commit import RuntimeStats, WriteStat
from lakewright.timeline.markers import MarkerKind


@dataclass(frozen=True, slots=True)
class NewGroups:
    """Makes file groups in a partition; in a bucket table those of one bucket."""

    spec: ServiceSpec
    partition: str
    attempt: Attempt
    bucket: int | None = None

    def write(self, fill: Callable[[IO[bytes], str], int]) -> WriteStat:
        """Make a group of one base file; ``fill`` writes it, knows its name, returns its rows."""
        began = time.monotonic()
        unique = new_file_id()
        if self.bucket is not None:
            unique = bucket_file_id(self.bucket, uuid.uuid4())
        name = base_file_name(unique, self.attempt.token, self.spec.instant)
        path = in_partition(self.partition, name)
        kind = MarkerKind.CREATE
        with new_file(self.spec, path, self.partition, kind, partition_known=True) as sink:
            rows = fill(sink, name)
            size = sink.tell()
        return WriteStat(
            file_id=unique,
            path=path,
            prev_commit=NO_COMMIT,
            num_writes=rows,
            num_inserts=rows,
            total_write_bytes=size,
            file_size_in_bytes=size,
            partition_path=self.partition,
            runtime_stats=RuntimeStats(total_create_time=int((time.monotonic() - began) * 1000)),
        )
