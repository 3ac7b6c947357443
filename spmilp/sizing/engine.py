"""Where points are solved: one after another in this process, or on Dask workers."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from spmilp.bench.child import Workers
from spmilp.errors import ArgumentError
from spmilp.sizing.process import Answer, PointRequest, answer_to, workers_in


class Engine(Protocol):
    """Answers requests."""

    def answers(self, requests: Mapping[str, PointRequest]) -> Iterator[tuple[str, Answer]]:
        """Yield the answer to each request with its key, as soon as it is there."""


class Serial:
    """Solves one point after another."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def answers(self, requests: Mapping[str, PointRequest]) -> Iterator[tuple[str, Answer]]:
        """Yield the answer to each request in turn."""
        for key, request in requests.items():
            yield key, answer_to(request, self._workers)


@contextmanager
def engine(jobs: int | None, scheduler: str | None, threads: int) -> Iterator[Engine]:
    """Give an engine, and end its workers afterwards.

    Parameters
    ----------
    jobs
        Points that are solved at one time on this computer: 1 needs no Dask; ``None`` for as many
        as there are processors for.
    scheduler
        The address of a Dask scheduler, whose workers solve them instead.
    threads
        Of each solve.

    Raises
    ------
    MissingExtraError
        If Dask is needed and not installed.
    SpmilpError
        If the scheduler does not answer.
    """
    if scheduler is not None:
        if jobs is not None:
            raise ArgumentError("jobs: a cluster has as many as it has workers; leave jobs out")
        from spmilp.sizing.cluster import running

        with running(scheduler) as cluster:
            yield cluster
        return
    jobs = jobs or max(1, (os.cpu_count() or 1) // threads)
    if jobs == 1:
        with TemporaryDirectory(prefix="spmilp-sweep-") as folder:
            workers = workers_in(Path(folder))
            try:
                yield Serial(workers)
            finally:
                workers.end_all()
        return
    from spmilp.sizing.cluster import local

    with local(jobs) as cluster:
        yield cluster
