"""Points on Dask workers: a local cluster, or one that runs already."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from spmilp.dask_client import SECONDS_TO_CONNECT, connected, require_dask
from spmilp.errors import SpmilpError
from spmilp.sizing.local_cluster import LocalCluster
from spmilp.sizing.process import Answer, PointRequest, answer_to, workers_in

if TYPE_CHECKING:
    from distributed import Client

MOST_LOSSES = 5
"""Times that a point is given to workers anew after Dask has given it up, because those that had
it were lost again and again."""

SECONDS_TO_COME_BACK = 120.0
"""For a scheduler that ran, and does not answer any more."""

NEEDED = "a sweep with other than one row at a time (--jobs 1, jobs=1)"

SHARE_OF_MEMORY = 0.9
"""Of a worker's memory that its points may use together."""


@dataclass
class Cluster:
    """Solves points on the workers of a scheduler.

    What the loss of a worker or of the scheduler has taken away is done again; answers that have
    arrived are never asked for again.

    Parameters
    ----------
    address
        The scheduler's.
    start
        Starts another one in the place of one that is lost, and returns its address; ``None``
        where somebody else does so, at the same address.
    """

    address: str
    start: Callable[[], str] | None = None
    _client: "Client | None" = field(default=None, repr=False)

    def answers(self, requests: Mapping[str, PointRequest]) -> Iterator[tuple[str, Answer]]:
        """Yield the answers as they come."""
        left = dict(requests)
        while left:
            try:
                for key, answer in self._answers_until_lost(left):
                    del left[key]
                    yield key, answer
            except _SchedulerLostError:
                self._come_back()

    def close(self) -> None:
        """Leave the scheduler; what workers are still doing nobody waits for."""
        if self._client is not None:
            with suppress(Exception):  # it may be gone
                self._client.close(timeout=5)
            self._client = None

    def connect(self, seconds: float = SECONDS_TO_CONNECT) -> None:
        """Connect to the scheduler.

        Raises
        ------
        SpmilpError
            If it does not answer.
        """
        self._client = connected(self.address, seconds)

    def _connected(self) -> "Client":
        if self._client is None:
            self.connect()
        if self._client is None:
            raise _SchedulerLostError
        return self._client

    def _answers_until_lost(
        self, requests: Mapping[str, PointRequest]
    ) -> Iterator[tuple[str, Answer]]:
        from distributed import CancelledError, KilledWorker, as_completed

        client, losses = self._connected(), dict.fromkeys(requests, 0)

        def submitted(key: str) -> Any:
            name = f"spmilp-{key}-{losses[key]}"
            return client.submit(_on_worker, requests[key], key=name, pure=False)

        keys = {}
        try:
            for key in requests:
                keys[submitted(key)] = key
            arriving = as_completed(list(keys), loop=client.loop)
            for future in arriving:
                key = keys.pop(future)
                if future.status == "cancelled" or client.status != "running":
                    raise _SchedulerLostError
                try:
                    answer = future.result()
                except KilledWorker as error:
                    losses[key] += 1
                    if losses[key] <= MOST_LOSSES:
                        again = submitted(key)
                        keys[again] = key
                        arriving.add(again)
                        continue
                    answer = Answer(status="killed", reason=f"its workers were lost: {error}")
                except (CancelledError, OSError) as error:
                    raise _SchedulerLostError from error
                except Exception as error:  # whatever the worker's installation says
                    reason = f"the worker: {type(error).__name__}: {error}"
                    answer = Answer(status="failed", reason=reason)
                future.release()
                yield key, answer
        finally:
            with suppress(Exception):  # the scheduler may be gone
                client.cancel(list(keys), force=True)

    def _come_back(self) -> None:
        """Wait for the scheduler.

        Raises
        ------
        SpmilpError
            If it does not answer again.
        """
        self.close()
        if self.start is not None:
            self.address = self.start()
        until = monotonic() + SECONDS_TO_COME_BACK
        while True:
            try:
                return self.connect()
            except SpmilpError as error:
                if monotonic() > until:
                    raise SpmilpError(
                        f"{error}; the rows that are finished are kept: the same command goes on "
                        "with the others"
                    ) from error
                sleep(1.0)


class _SchedulerLostError(Exception):
    """The scheduler has ended, or cannot be reached any more."""


@contextmanager
def local(jobs: int) -> Iterator[Cluster]:
    """Start workers on this computer, each a process with its part of the memory.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    """
    require_dask(NEEDED)
    with TemporaryDirectory(prefix="spmilp-dask-", ignore_cleanup_errors=True) as folder:
        own = LocalCluster(jobs, Path(folder))
        try:
            yield from _used(Cluster(own.start(), own.start))
        finally:
            own.end()


@contextmanager
def running(address: str) -> Iterator[Cluster]:
    """Connect to a cluster that runs already.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    SpmilpError
        If no scheduler answers at the address.
    """
    require_dask(NEEDED)
    yield from _used(Cluster(address))


def _used(cluster: Cluster) -> Iterator[Cluster]:
    cluster.connect()
    try:
        yield cluster
    finally:
        cluster.close()


def _on_worker(request: PointRequest) -> Answer:
    """Solve a point with this worker's part of its memory."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    if limit:
        share = int(limit * SHARE_OF_MEMORY) // max(1, worker.state.nthreads)
        request = replace(request, memory=share)
    return answer_to(request, _workers_in(worker.local_directory))


_workers_in = cache(lambda folder: workers_in(Path(folder)))
"""Of a Dask worker, which is a process; they end when it does."""
