"""Jobs on the workers of a Dask scheduler that runs already; Dask gives lost ones to others."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from spmilp.errors import MissingExtraError, SpmilpError
from spmilp.processes import Children
from spmilp.runs.jobs import Answer, Executor, Job, answer_of

if TYPE_CHECKING:
    from distributed import Future

SECONDS_TO_CONNECT = 10.0


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to a scheduler for as long as the block runs, and give what carries jobs out there.

    Raises a ``SpmilpError`` if Dask is not installed, or the scheduler does not answer or is lost.
    """
    try:
        from distributed import Client, as_completed
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

    def answers(jobs: Iterable[Job]) -> Iterator[Answer]:
        asked = {client.submit(_on_worker, job, pure=False): job for job in jobs}
        try:
            for future in as_completed(list(asked), loop=client.loop):
                yield _answer(asked.pop(future), future)
        finally:
            with suppress(Exception):  # the scheduler may be gone
                client.cancel(list(asked), force=True)

    try:
        yield answers
    finally:
        with suppress(Exception):  # it may be gone; what workers are still doing nobody waits for
            client.close(timeout=5)


def _answer(job: Job, future: "Future[Answer]") -> Answer:
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
        return Answer(job.ended("failed", f"the worker: {type(error).__name__}: {error}"))
    return answer


def _on_worker(job: Job) -> Answer:
    return answer_of(job, _children())


_children = cache(Children)
"""Returns the processes of a Dask worker; they end when it does."""
