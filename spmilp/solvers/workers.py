"""The workers of a Dask cluster: what they are asked, what they answer, whether there are any."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from spmilp.solvers.common.clock import Clock

if TYPE_CHECKING:
    from distributed import Client

Future: TypeAlias = Any
"""Dask's."""

HEARTBEAT = 0.2
WITHOUT_WORKERS = 15.0
"""Seconds without any worker after which they count as lost."""

LATE, LEAST_LATE = 0.25, 1.0
"""Share of the time that answers take, and seconds at least, by which one may be late."""


class Workers:
    """Asks functions of the workers, and collects what they return.

    Parameters
    ----------
    clock
        Whose seconds count.

    Attributes
    ----------
    running
        What was asked and is not answered yet, by name.
    are_lost
        Whether nothing is to be expected any more.
    """

    def __init__(self, client: "Client", clock: Clock) -> None:
        self.running: dict[str, Future] = {}
        self.are_lost = False
        self._client = client
        self._clock = clock
        self._back: SimpleQueue[Future] = SimpleQueue()
        self._seen = clock.now()

    def slots(self) -> int:
        """Return the threads of all workers, and note whether there are any."""
        try:
            found = int(sum(self._client.nthreads().values()))
        except Exception:  # whatever a scheduler that is lost leads to
            found = 0
        now = self._clock.now()
        self._seen = now if found else self._seen
        self.are_lost = self._client.status != "running" or now - self._seen > WITHOUT_WORKERS
        return found

    def shared(self, value: object) -> Future:
        """Send something to all workers; return what stands for it in further questions.

        ``None`` where the scheduler is lost.
        """
        try:
            return self._client.scatter(value, broadcast=True, hash=False)
        except Exception:  # whatever a scheduler that is lost leads to
            return None

    def submit(self, name: str, function: Callable[..., object], *arguments: object) -> None:
        """Ask a function, once."""
        future = self._client.submit(function, *arguments, key=name, pure=False, retries=0)
        self.running[name] = future
        future.add_done_callback(self._back.put)

    def answer(self) -> Future | None:
        """Return the next answer; ``None`` when there is none for a while."""
        try:
            future = self._back.get(timeout=HEARTBEAT)
        except Empty:
            return None
        return future if self.running.pop(future.key, None) is not None else None

    def answers(self, seconds: float | None) -> list[Any]:
        """Return what comes of all that is running, in the order in which it was asked.

        ``None`` for what fails, or is much later than it was to be.

        Parameters
        ----------
        seconds
            That answers take; ``None`` for any number.
        """
        names, found = list(self.running), dict[str, Any]()
        late = None if seconds is None else seconds + max(LEAST_LATE, LATE * seconds)
        began = self._clock.now()
        while self.running and not self.are_lost:
            future = self.answer()
            if future is None:
                self.slots()
            elif future.status == "finished":
                found[future.key] = future.result()
            if late is not None and self._clock.now() - began > late:
                break
        self.cancel()
        return [found.get(name) for name in names]

    def cancel(self) -> None:
        """Leave what nobody waits for any more."""
        try:
            self._client.cancel(list(self.running.values()), force=True)
        except Exception:  # whatever a scheduler that is lost leads to
            self._back = SimpleQueue()
        self.running.clear()
