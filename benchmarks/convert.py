"""Problems from flexible job shops and from lists of buffers with lifetimes.

Usage: python -m benchmarks.convert FILE [--from fjsp|minimalloc] [--capacity BYTES] -o OUT.json

``fjsp`` is the usual text format (Brandimarte 1993; Fattahi et al. 2007). First line: jobs,
machines, and often the mean number of machines per operation. Then a line for each job: its number
of operations, and for each of them the number of machines that can run it, followed by a machine
(from 1) and a time for each of these. A machine becomes a core of a kind of its own, an operation a
task after the one before it in its job. Nothing is read or written.

``minimalloc`` is MiniMalloc's CSV: ``id,lower,upper,size``. Everything is fixed but the addresses.
One core works in one scratchpad, without any DMA engine, so nothing can leave or come back. The
tasks are a chain; each one lasts from one instant at which some lifetime starts or ends to the
next. A buffer is written by the task with which its lifetime starts, and read by the one with which
it ends, unless they are the same. So in a plan without idle cycles each buffer has a residency for
exactly its lifetime, and the plans differ in offsets alone. Idle cycles only make lifetimes longer.
"""

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spmilp.errors import FileError, SpmilpError
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.packing.minimalloc import read_table
from spmilp.problem.file import write_problem
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Buffer, BufferKind, Problem, Task, whole_slice
from spmilp.quantities import byte_count
from spmilp.units import Bytes, Cycles, align_up

ENDINGS = {".txt": "fjsp", ".fjs": "fjsp", ".csv": "minimalloc"}


class Lifetime(NamedTuple):
    """A run of bytes that lives during ``[start, end)``."""

    name: str
    start: Cycles
    end: Cycles
    bytes: Bytes


def read_job_shop(path: Path) -> Problem:
    """Read a flexible job shop as a problem; its makespan is the shop's.

    Raises
    ------
    FileError
        If the file breaks the format; the message names the line.
    """
    try:
        lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
        jobs, machines = map(int, lines[0][:2])
    except (ValueError, IndexError) as error:
        raise FileError(f"{path}: expected a first line such as '10 6 2'") from error
    if len(lines) != jobs + 1:
        raise FileError(f"{path}: {jobs} jobs are announced, but {len(lines) - 1} lines follow")
    tasks: list[Task] = []
    for job, words in enumerate(lines[1:], start=1):
        try:
            operations = _operations(list(map(int, words)), machines)
        except (ValueError, IndexError) as error:
            raise FileError(
                f"{path}, job {job}: expected its operations, each with its machines (from 1 to "
                f"{machines}) and times: {error}"
            ) from error
        for step, cycles in enumerate(operations, start=1):
            tasks.append(
                Task(
                    index=len(tasks),
                    name=f"job{job}.{step}",
                    cycles=cycles,
                    after=(len(tasks) - 1,) if step > 1 else (),
                )
            )
    machine = Machine(
        name=f"{path.stem} machines",
        memories=(Memory(index=0, name="unused", kind=MemoryKind.SPM, size=1),),
        kinds=tuple(CoreKind(index=m, name=f"machine{m + 1}") for m in range(machines)),
        cores=tuple(Core(index=m, name=f"m{m + 1}", kind=m, memory=0) for m in range(machines)),
    )
    return Problem(name=path.stem, machine=machine, tasks=tuple(tasks))


def _operations(numbers: list[int], machines: int) -> list[tuple[Cycles | None, ...]]:
    """Return the times of each operation of a job on each machine."""
    operations = []
    at = 1
    for _ in range(numbers[0]):
        times: list[Cycles | None] = [None] * machines
        for first in range(at + 1, at + 1 + 2 * numbers[at], 2):
            machine, cycles = numbers[first], numbers[first + 1]
            if not 1 <= machine <= machines or times[machine - 1] is not None or cycles < 1:
                raise ValueError(f"machine {machine} with time {cycles}")
            times[machine - 1] = cycles
        operations.append(tuple(times))
        at += 1 + 2 * numbers[at]
    if at != len(numbers):
        raise ValueError(f"{len(numbers)} numbers, but the operations end after {at}")
    return operations


def read_lifetimes(path: Path, capacity: Bytes | None = None) -> Problem:
    """Read a list of buffers, which a problem can hold as far as lifetimes and sizes go.

    Raises
    ------
    SpmilpError
        If it says more than that.
    """
    table = read_table(path)
    alignments = sorted({item.alignment for item in table.items} or {1})
    if len(alignments) > 1 or alignments[0].bit_count() != 1:
        raise SpmilpError(
            f"{path}: has alignments of {', '.join(map(str, alignments))} B; a memory has one, a "
            "power of 2"
        )
    lifetimes = []
    for name, item in zip(table.ids, table.items, strict=True):
        if item.offset is not None or len(item.lifetimes) > 1:
            raise SpmilpError(
                f"{path}: id {name} has a fixed offset or gaps, which a problem cannot say"
            )
        ((start, end),) = item.lifetimes
        lifetimes.append(Lifetime(name, start, end, item.size))
    return problem_of_lifetimes(path.stem, lifetimes, capacity, alignments[0])


def problem_of_lifetimes(
    name: str, lifetimes: Sequence[Lifetime], capacity: Bytes | None = None, alignment: Bytes = 1
) -> Problem:
    """Return the problem of placing buffers whose lifetimes are given; it minimises the peak.

    Parameters
    ----------
    capacity
        Bytes of the memory; ``None`` for enough to place all of them side by side.

    Raises
    ------
    SpmilpError
        If there is nothing to place.
    """
    if not lifetimes:
        raise SpmilpError(f"{name}: has no buffers, so there is nothing to place")
    instants = sorted({time for one in lifetimes for time in (one.start, one.end)})
    step = {time: number for number, time in enumerate(instants)}
    writes: list[list[int]] = [[] for _ in instants[1:]]
    reads: list[list[int]] = [[] for _ in instants[1:]]
    for index, one in enumerate(lifetimes):
        first, last = step[one.start], step[one.end] - 1
        writes[first].append(index)
        if last > first:
            reads[last].append(index)
    buffers = tuple(
        Buffer(index=i, name=one.name, kind=BufferKind.INTERMEDIATE, shape=(one.bytes,))
        for i, one in enumerate(lifetimes)
    )
    enough = sum(align_up(one.bytes, alignment) for one in lifetimes)
    size = enough if capacity is None else capacity
    machine = Machine(
        name="one scratchpad",
        memories=(
            Memory(index=0, name="spm", kind=MemoryKind.SPM, size=size, alignment=alignment),
        ),
        kinds=(CoreKind(index=0, name="core"),),
        cores=(Core(index=0, name="core", kind=0, memory=0),),
    )
    return Problem(
        name=name,
        machine=machine,
        buffers=buffers,
        slices=tuple(map(whole_slice, buffers)),
        tasks=tuple(
            Task(
                index=number,
                name=f"from {start}",
                cycles=(end - start,),
                reads=tuple(reads[number]),
                writes=tuple(writes[number]),
                after=(number - 1,) if number else (),
            )
            for number, (start, end) in enumerate(pairwise(instants))
        ),
        objective=Objective.of(Quantity.PEAK_SPM),
    )


def main() -> None:
    """Convert a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--from", dest="source", choices=sorted(set(ENDINGS.values())))
    parser.add_argument("--capacity", type=byte_count)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    source = given.source or ENDINGS.get(given.file.suffix)
    if source is None:
        parser.error(f"{given.file}: give --from, its ending does not say what it is")
    if source == "fjsp":
        problem = read_job_shop(given.file)
    else:
        problem = read_lifetimes(given.file, given.capacity)
    write_problem(problem, given.output)
    print(f"{given.output}: {len(problem.tasks)} tasks, {len(problem.buffers)} buffers")


if __name__ == "__main__":
    main()
