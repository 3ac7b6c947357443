"""Solves that are to be made: jobs, their answers, and child processes that carry them out."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import spmilp
from spmilp.processes import ChildError, Children
from spmilp.runs.run import Run

LEAST_GRACE, SHARE_OF_GRACE = 30.0, 0.5
"""Seconds that a solver may go on after its time limit before it is ended, at least, and as a share
of the limit."""

LONGEST_AROUND = 1800.0
"""Seconds for what has no limit of its own: making the problem, checking and writing the plan."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The row of a job, and the files ``problem.json`` and ``plan.json`` where it has a plan."""

    run: Run
    files: Mapping[str, bytes] = field(default_factory=dict)


class Job(Protocol):
    """One solve, with all that it depends on: it is pickled and carried out elsewhere."""

    @property
    def key(self) -> str:
        """A hash of all that the result depends on."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solver; ``None`` for no limit."""

    def carry_out(self) -> Answer:
        """Solve it, here.

        Raises
        ------
        SpmilpError
            If it cannot be solved; the job has then failed.
        """

    def ended(self, status: str, reason: str) -> Run:
        """Return the row of the job when it has ended without a plan."""


class Executor(Protocol):
    """Carries jobs out somewhere."""

    def answers(self, jobs: Iterable[Job]) -> Iterator[Answer]:
        """Yield the answers as they come, in any order."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Carries out jobs in child processes, so many at one time."""

    children: Children
    at_once: int = 1

    def answers(self, jobs: Iterable[Job]) -> Iterator[Answer]:
        """Yield the answers as they come."""
        if self.at_once == 1:
            for job in jobs:
                yield answer_of(job, self.children)
            return
        with ThreadPoolExecutor(self.at_once) as pool:
            asked = [pool.submit(answer_of, job, self.children) for job in jobs]
            try:
                for done in as_completed(asked):
                    yield done.result()
            except BaseException:
                for each in asked:
                    each.cancel()
                self.children.end()  # or else the pool would wait for them
                raise


def answer_of(job: Job, children: Children) -> Answer:
    """Carry a job out in a child; a crash, an error or a time-out becomes a status."""
    limit = job.time_limit
    if limit is not None:
        limit += max(LEAST_GRACE, SHARE_OF_GRACE * limit) + LONGEST_AROUND
    try:
        answer: Answer = children.call(carry_out, job, limit=limit)
    except ChildError as error:
        return Answer(job.ended(error.status, str(error)))
    return answer


def carry_out(job: Job) -> Answer:
    """Carry a job out here."""
    return job.carry_out()


@cache
def code_version() -> str:
    """Return the version, and a hash of all sources of the package, the same on any computer."""
    folder, found = Path(spmilp.__file__).parent, sha256()
    for file in sorted(folder.rglob("*.py")):
        found.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return f"{spmilp.__version__}+{found.hexdigest()[:12]}"
