"""Flexible job shops: operations in chains, each on one of several machines.

The usual text format (Brandimarte 1993; Fattahi et al. 2007). First line: jobs, machines, and
often the mean number of machines per operation. Then a line for each job: its number of
operations, and for each of them the number of machines that can run it, followed by a machine
(from 1) and a time for each of these.

A machine becomes a core of a kind of its own, an operation a task after the one before it in its
job. Nothing is read or written, and the scratchpads are of no use.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import FileError, PinError, SpmilpError
from spmilp.files import read_bytes
from spmilp.machine.fields import LARGEST
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.problem.problem import Problem, Task
from spmilp.units import CoreIdx, Cycles, TaskIdx

MOST_MACHINES = 10_000
"""More are taken for a defect of the file."""

Operation = dict[int, Cycles]
"""The time of an operation on each machine that can run it; machines count from 0."""


def read_job_shop(path: Path | str) -> Problem:
    """Read a flexible job shop as a problem; its makespan is the shop's.

    Raises
    ------
    FileError
        If the file cannot be read or breaks the format; the message names the line.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: is no text in UTF-8; expected numbers") from error
    lines = [
        _Line(path, number, tuple(words))
        for number, line in enumerate(text.splitlines(), start=1)
        if (words := line.split())
    ]
    if not lines:
        raise FileError(f"{path}: is empty; expected a first line such as '10 6 2'")
    jobs, machines = lines[0].header()
    if len(lines) != jobs + 1:
        raise FileError(
            f"{path}, line {lines[0].number}: {jobs} jobs are announced, but "
            f"{len(lines) - 1} lines follow; expected one for each job"
        )
    return _problem(Path(path).stem, machines, [line.job(machines) for line in lines[1:]])


def job_shop_text(problem: Problem) -> str:
    """Return a problem without data as a flexible job shop; each core is a machine.

    Raises
    ------
    SpmilpError
        If tasks read, write or need scratch bytes, do not form chains, or are pinned.
    """
    if problem.pins:
        raise PinError(f"{problem.name}: has pins, which a job shop cannot say")
    jobs = list(_chains(problem))
    machines = len(problem.machine.cores)
    eligible = 0
    lines = []
    for job in jobs:
        words = [len(job)]
        for task in job:
            able = _able(problem, task)
            eligible += len(able)
            words.append(len(able))
            words += (word for core, cycles in able for word in (core + 1, cycles))
        lines.append(" ".join(map(str, words)))
    mean = round(eligible / max(1, len(problem.tasks)), 2)
    return "\n".join([f"{len(jobs)} {machines} {mean:g}", *lines, ""])


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path | str
    number: int
    words: tuple[str, ...]

    def header(self) -> tuple[int, int]:
        """Return the numbers of jobs and machines."""
        if len(self.words) not in (2, 3):
            raise self._error(f"has {len(self.words)} numbers, expected jobs, machines [, mean]")
        jobs, machines = self._number(0, "the number of jobs"), self._number(1, "of machines")
        if machines > MOST_MACHINES:
            raise self._error(f"announces {machines} machines, expected at most {MOST_MACHINES}")
        return jobs, machines

    def job(self, machines: int) -> list[Operation]:
        """Return the operations of a job."""
        operations: list[Operation] = []
        at = 1
        for number in range(1, self._number(0, "the number of operations") + 1):
            who = f"operation {number}"
            count = self._number(at, f"the number of machines of {who}")
            operation: Operation = {}
            for first in range(at + 1, at + 1 + 2 * count, 2):
                machine = self._number(first, f"a machine of {who}")
                if machine > machines:
                    raise self._error(f"{who}: machine {machine}, but there are {machines}")
                if machine - 1 in operation:
                    raise self._error(f"{who}: machine {machine} is given twice")
                operation[machine - 1] = self._number(first + 1, f"a time of {who}")
            operations.append(operation)
            at += 1 + 2 * count
        if at < len(self.words):
            raise self._error(
                f"has {len(self.words)} numbers, but its {len(operations)} operations end "
                f"after {at}"
            )
        return operations

    def _number(self, at: int, what: str) -> int:
        if at >= len(self.words):
            raise self._error(f"ends after {len(self.words)} numbers, expected {what}")
        word = self.words[at]
        if not (word.isascii() and word.isdecimal() and 0 < int(word[:20]) <= LARGEST):
            shown = word if len(word) <= 20 else f"{word[:20]}…"
            raise self._error(f"{shown!r}, expected {what}, a whole number from 1 to {LARGEST}")
        return int(word)

    def _error(self, message: str) -> FileError:
        return FileError(f"{self.path}, line {self.number}: {message}")


def _problem(name: str, machines: int, jobs: list[list[Operation]]) -> Problem:
    tasks: list[Task] = []
    for job, operations in enumerate(jobs, start=1):
        for step, operation in enumerate(operations, start=1):
            tasks.append(
                Task(
                    index=len(tasks),
                    name=f"job{job}.{step}",
                    cycles=tuple(operation.get(machine) for machine in range(machines)),
                    after=(len(tasks) - 1,) if step > 1 else (),
                )
            )
    return Problem(name=name, machine=_machine(name, machines), tasks=tuple(tasks))


def _machine(name: str, count: int) -> Machine:
    return Machine(
        name=f"{name} machines",
        memories=(Memory(index=0, name="unused", kind=MemoryKind.SPM, size=1),),
        kinds=tuple(CoreKind(index=m, name=f"machine{m + 1}") for m in range(count)),
        cores=tuple(Core(index=m, name=f"m{m + 1}", kind=m, memory=0) for m in range(count)),
    )


def _able(problem: Problem, task: Task) -> list[tuple[CoreIdx, Cycles]]:
    pairs = ((core.index, task.cycles[core.kind]) for core in problem.machine.cores)
    able = [(core, cycles) for core, cycles in pairs if cycles is not None]
    if not able:
        raise SpmilpError(f"task {task.name}: no core of the machine is of a kind that can run it")
    return able


def _chains(problem: Problem) -> Iterator[list[Task]]:
    """Yield the jobs, in the order of their first tasks."""
    for task in problem.tasks:
        if task.reads or task.writes or task.scratch:
            raise SpmilpError(
                f"task {task.name}: reads {len(task.reads)} slices, writes {len(task.writes)} "
                f"buffers, needs {task.scratch} B of scratch; a job shop has no data"
            )
    before = problem.predecessors()
    follower: dict[TaskIdx, TaskIdx] = {}
    for task in problem.tasks:
        if len(before[task.index]) > 1:
            raise SpmilpError(
                f"task {task.name}: follows {len(before[task.index])} tasks; in a job shop an "
                "operation follows one at most"
            )
        follower |= dict.fromkeys(before[task.index], task.index)
    followers = Counter(earlier for some in before for earlier in some)
    for earlier, count in followers.items():
        if count > 1:
            raise SpmilpError(
                f"task {problem.tasks[earlier].name}: {count} tasks follow it; in a job shop one "
                "at most does"
            )
    for task in problem.tasks:
        if not before[task.index]:
            chain = [task]
            while (following := follower.get(chain[-1].index)) is not None:
                chain.append(problem.tasks[following])
            yield chain
