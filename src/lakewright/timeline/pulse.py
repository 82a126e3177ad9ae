"""A thread that does one small thing again and again, until it is told to stop."""

import logging
import threading
from collections.abc import Callable

from lakewright.model.errors import LakewrightError
from lakewright.model.logs import facts

log = logging.getLogger(__name__)


class Pulse:
    """Calls ``beat`` every ``seconds``; a beat that fails is logged, and the next one tries again.

    It ends with the process: nothing waits for it.
    """

    def __init__(self, name: str, beat: Callable[[], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lakewright {name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a beat that is under way is waited for."""
        self._done.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._seconds):
            try:
                self._beat()
            except LakewrightError as error:
                log.warning("%s: %s", self._thread.name, error, extra=facts(code=error.code))
