"""Jobs on the workers of a Dask scheduler that runs already; Dask gives lost ones to others."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from spmilp.errors import MissingExtraError, SpmilpError
from spmilp.processes import Children
from spmilp.runs.jobs import Answer, Job, answer_of

if TYPE_CHECKING:
    from distributed import Client, Future

SECONDS_TO_CONNECT = 10.0


@contextmanager
def cluster(address: str) -> Iterator["Cluster"]:
    """Connect to a scheduler for as long as the block runs.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    SpmilpError
        If the scheduler does not answer.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "a scheduler's workers are reached by Dask, which is not installed: "
            "pip install 'spmilp[sweep]'"
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is said here
    limits = {"timeout": SECONDS_TO_CONNECT, "set_as_default": False}
    try:
        client = Client(address, direct_to_workers=False, **limits)
    except (OSError, ValueError, TypeError) as error:
        raise SpmilpError(
            f"no Dask scheduler answers at {address} within {SECONDS_TO_CONNECT:g} s: {error}"
        ) from error
    try:
        yield Cluster(client)
    finally:
        with suppress(Exception):  # it may be gone; what workers are still doing nobody waits for
            client.close(timeout=5)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Carries out jobs on the workers of a scheduler."""

    client: "Client"

    def answers(self, jobs: Iterable[Job]) -> Iterator[Answer]:
        """Yield the answers as they come.

        Raises
        ------
        SpmilpError
            If the scheduler is lost.
        """
        from distributed import as_completed

        asked = {self.client.submit(_on_worker, job, pure=False): job for job in jobs}
        try:
            for future in as_completed(list(asked), loop=self.client.loop):
                yield self._answer(asked.pop(future), future)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self.client.cancel(list(asked), force=True)

    def _answer(self, job: Job, future: "Future[Answer]") -> Answer:
        from distributed import CancelledError, KilledWorker

        try:
            answer: Answer = future.result()
        except KilledWorker as error:  # again and again
            return Answer(job.ended("killed", f"its workers were lost: {error}"))
        except (CancelledError, OSError) as error:
            raise SpmilpError(
                "the Dask scheduler is lost; the rows that are finished are kept: the same command "
                "goes on with the others"
            ) from error
        except Exception as error:  # whatever the worker's installation says
            reason = f"the worker: {type(error).__name__}: {error}"
            return Answer(job.ended("failed", reason))
        return answer


def _on_worker(job: Job) -> Answer:
    return answer_of(job, _children())


@cache
def _children() -> Children:
    """Return the processes of a Dask worker; they end when it does."""
    return Children()
