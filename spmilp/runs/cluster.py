"""Jobs on Dask workers: of a cluster on this computer, or of one that runs already.

What the loss of a worker or of the scheduler has taken away is done again; answers that have
arrived are never asked for again.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from spmilp.errors import MissingExtraError, SpmilpError
from spmilp.processes import Child, ChildError, Children
from spmilp.runs.jobs import Answer, Job, answer_of

if TYPE_CHECKING:
    from distributed import Client

SECONDS_TO_CONNECT = 10.0

SECONDS_TO_COME_BACK = 120.0
"""Time for a scheduler that has stopped answering to come back."""

SHARE_OF_MEMORY = 0.9
"""Share of a worker's memory that its jobs may use together."""


class _SchedulerLostError(Exception):
    """The scheduler has ended, or cannot be reached any more."""


@dataclass
class Cluster:
    """Carries out jobs on the workers of a scheduler.

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

    def answers(self, jobs: Iterable[Job]) -> Iterator[Answer]:
        """Yield the answers as they come."""
        left = {job.key: job for job in jobs}
        while left:
            try:
                for answer in self._answers_until_lost(left):
                    del left[answer.run.key]
                    yield answer
            except _SchedulerLostError:
                self._come_back()

    def connect(self) -> "Client":
        """Connect to the scheduler.

        Raises
        ------
        SpmilpError
            If it does not answer.
        """
        from distributed import Client

        for name in ("distributed", "distributed.client"):  # what is lost is said here
            logging.getLogger(name).setLevel(logging.CRITICAL)
        limits = {"timeout": SECONDS_TO_CONNECT, "set_as_default": False}
        try:
            self._client = Client(self.address, direct_to_workers=False, **limits)
        except (OSError, ValueError, TypeError) as error:
            raise SpmilpError(
                f"no Dask scheduler answers at {self.address} within {SECONDS_TO_CONNECT:g} s: "
                f"{error}"
            ) from error
        return self._client

    def close(self) -> None:
        """Leave the scheduler; what workers are still doing nobody waits for."""
        if self._client is not None:
            with suppress(Exception):  # it may be gone
                self._client.close(timeout=5)
            self._client = None

    def _answers_until_lost(self, jobs: dict[str, Job]) -> Iterator[Answer]:
        from distributed import CancelledError, KilledWorker, as_completed

        client = self._client or self.connect()
        asked = {client.submit(_on_worker, job, pure=False): job for job in jobs.values()}
        try:
            for future in as_completed(list(asked), loop=client.loop):
                job = asked.pop(future)
                if future.status == "cancelled" or client.status != "running":
                    raise _SchedulerLostError
                try:
                    answer = future.result()
                except KilledWorker as error:  # again and again
                    answer = Answer(job.ended("killed", f"its workers were lost: {error}"))
                except (CancelledError, OSError) as error:
                    raise _SchedulerLostError from error
                except Exception as error:  # whatever the worker's installation says
                    reason = f"the worker: {type(error).__name__}: {error}"
                    answer = Answer(job.ended("failed", reason))
                future.release()
                yield answer
        finally:
            with suppress(Exception):  # the scheduler may be gone
                client.cancel(list(asked), force=True)

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
                self.connect()
                return
            except SpmilpError as error:
                if monotonic() > until:
                    raise SpmilpError(
                        f"{error}; the rows that are finished are kept: the same command goes on "
                        "with the others"
                    ) from error
                sleep(1.0)


@contextmanager
def cluster(jobs: int, scheduler: str | None = None) -> Iterator[Cluster]:
    """Connect to a scheduler, or start one on this computer with so many workers.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    SpmilpError
        If the scheduler does not answer, or the workers do not start.
    """
    if find_spec("distributed") is None:
        raise MissingExtraError(
            "a sweep with other than one row at a time (--jobs 1, jobs=1) needs Dask, which is not "
            "installed: pip install 'spmilp[sweep]'"
        )
    with TemporaryDirectory(prefix="spmilp-dask-", ignore_cleanup_errors=True) as folder:
        own: list[Child] = []

        def start() -> str:
            # In a process of its own, workers need nothing of the program that sweeps (which Dask
            # would have each of them import), outlive none of it, and can be started anew.
            for before in own:
                before.end()
            own[:] = [Child()]
            try:
                return str(own[0].call(start_workers, jobs, folder))
            except ChildError as error:
                raise SpmilpError(f"Dask's workers do not start: {error}") from error

        found = Cluster(scheduler) if scheduler is not None else Cluster(start(), start)
        try:
            found.connect()
            yield found
        finally:
            found.close()
            for child in own:
                child.end()


def start_workers(jobs: int, folder: str) -> str:
    """Start a scheduler and workers below this process; return the scheduler's address.

    Each worker is a process with one thread and its part of the memory.
    """
    from distributed import LocalCluster
    from distributed.system import MEMORY_LIMIT

    _kept.append(
        LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=MEMORY_LIMIT // jobs,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        )
    )
    return str(_kept[-1].scheduler_address)


_kept: list[Any] = []
"""Clusters of this process: without a reference they would be closed."""


def _on_worker(job: Job) -> Answer:
    """Carry a job out with this worker's part of its memory."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    share = int(limit * SHARE_OF_MEMORY) // max(1, worker.state.nthreads) if limit else None
    return answer_of(job, _children(), share)


@cache
def _children() -> Children:
    """Return the processes of a Dask worker; they end when it does."""
    return Children()
