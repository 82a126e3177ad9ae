"""A file on its way to an object store, in parts."""

import io
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakewright.model.errors import LakewrightError
from lakewright.storage.s3_client import Client, mapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import ReadableBuffer

PART = 16 << 20
"""The store takes 10,000 parts, so that a file of 160 GB still fits."""

_THREADS = 4


class Upload(io.RawIOBase):
    """Takes bytes, sends them in parts of ``PART``; the object appears with ``finish``.

    At most five parts are in memory: one that grows and four on their way.
    """

    def __init__(self, client: Client, place: "Mapping[str, str]", path: str, uri: str) -> None:
        super().__init__()
        self._client = client
        self._place = place
        self._path = path
        self._uri = uri
        self._grown = bytearray()
        self._written = 0
        self._upload = ""
        self._sent: list[dict[str, object]] = []
        self._on_their_way: deque[Future[dict[str, object]]] = deque()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="lakewright-upload")

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._written

    def write(self, data: "ReadableBuffer") -> int:
        """Take all of ``data``; it may wait until an earlier part has left."""
        if self.closed:
            raise ValueError("the file is closed")
        view = memoryview(data).cast("B")
        length = len(view)
        self._written += length
        while len(self._grown) + len(view) >= PART:
            taken = PART - len(self._grown)
            self._grown += view[:taken]
            view = view[taken:]
            self._send()
        self._grown += view
        return length

    def finish(self) -> None:
        """Send what is left and let the object appear."""
        self.close()
        try:
            with mapped(self._path, self._uri):
                if not self._upload:
                    self._client.put_object(**self._place, Body=bytes(self._grown))
                    return
                if self._grown:
                    self._send()
                while self._on_their_way:
                    self._sent.append(self._on_their_way.popleft().result())
                self._client.complete_multipart_upload(
                    **self._place, UploadId=self._upload, MultipartUpload={"Parts": self._sent}
                )
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def abandon(self) -> None:
        """Send nothing more, and have the store forget what it has."""
        self.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._upload:
            try:
                with mapped(self._path, self._uri):
                    self._client.abort_multipart_upload(**self._place, UploadId=self._upload)
            except LakewrightError:
                return  # the error that led here says more; the bucket's own rules tidy up

    def _send(self) -> None:
        with mapped(self._path, self._uri):
            if not self._upload:
                answer = self._client.create_multipart_upload(**self._place)
                self._upload = answer["UploadId"]
            number = len(self._sent) + len(self._on_their_way) + 1
            self._on_their_way.append(self._pool.submit(self._part, number, bytes(self._grown)))
            self._grown.clear()
            if len(self._on_their_way) >= _THREADS:
                self._sent.append(self._on_their_way.popleft().result())

    def _part(self, number: int, data: bytes) -> dict[str, object]:
        answer = self._client.upload_part(
            **self._place, UploadId=self._upload, PartNumber=number, Body=data
        )
        return {"PartNumber": number, "ETag": answer["ETag"]}
