"""The smallest plans in which something must wait: two cores, a scratchpad in common, a DRAM."""

from fractions import Fraction

from commands.helpers import move, plan_of, stay
from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.plan.plan import Placement, Plan
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task

DRAM, SPM = 0, 1

MACHINE = Machine(
    name="two cores",
    memories=(
        Memory(index=DRAM, name="dram", kind=MemoryKind.DRAM, size=None),
        Memory(index=SPM, name="spm", kind=MemoryKind.SPM, size=256),
    ),
    kinds=(CoreKind(index=0, name="core"),),
    cores=tuple(Core(index=n, name=f"c{n}", kind=0, memory=SPM) for n in range(2)),
    links=(
        Link(index=0, source="dram", target="spm", rate=Fraction(8)),
        Link(index=1, source="spm", target="dram", rate=Fraction(8)),
    ),
    engines=(Engine(index=0, name="dma", owner=SPM, channels=2, rate=Fraction(8)),),
)


def load_run_store() -> tuple[Problem, Plan]:
    """Return two loads, a task of each core on one of them, and a store of each result.

    Buffers 0 and 1 are halves of the input x, 2 and 3 of the output y. The second load goes by
    the other channel. The second result takes the bytes of the first operand, [0, 8), so that its
    task has to wait for the first.
    """
    problem = halves()
    plan = plan_of(
        placements=(
            Placement(task=0, core=0, start=10, end=20, reads=(1,), writes=(2,)),
            Placement(task=1, core=1, start=20, end=30, reads=(5,), writes=(6,)),
        ),
        residencies=(
            stay(0, 0, DRAM, 0, 8, 0, 10),
            stay(1, 0, SPM, 0, 8, 0, 20, transfer=0),
            stay(2, 2, SPM, 16, 24, 10, 30, task=0),
            stay(3, 2, DRAM, 64, 72, 20, 40, transfer=2),
            stay(4, 1, DRAM, 8, 16, 0, 10),
            stay(5, 1, SPM, 8, 16, 0, 30, transfer=1),
            stay(6, 3, SPM, 0, 8, 20, 40, task=1),
            stay(7, 3, DRAM, 72, 80, 30, 40, transfer=3),
        ),
        transfers=(
            move(0, 0, 0, 1, 0, 10),
            move(1, 1, 4, 5, 0, 10, channel=1),
            move(2, 2, 2, 3, 20, 30),
            move(3, 3, 6, 7, 30, 40),
        ),
        tensors=(0, 64),
    )
    return problem, plan


def problem_of(tensors: int, buffers: tuple[Buffer, ...], *tasks: Task) -> Problem:
    """Return a problem whose buffers, of 8 B, are read as a whole, on DRAM tensors of 16 B."""
    return Problem(
        name="small",
        machine=MACHINE,
        tensors=tuple(
            DramTensor(
                index=n, name="xy"[n], kind=BufferKind.INPUT, memory=DRAM, shape=(16,), item=1
            )
            for n in range(tensors)
        ),
        buffers=buffers,
        slices=tuple(
            Slice(index=b.index, buffer=b.index, start=(0,), extent=(8,), bytes=8) for b in buffers
        ),
        tasks=tasks,
    )


def halves(after: tuple[int, ...] = ()) -> Problem:
    """Return two tasks, each from one half of an input to one half of an output."""
    buffers = tuple(
        Buffer(
            index=n,
            name="xxyy"[n] + str(n % 2),
            kind=BufferKind.INPUT if n < 2 else BufferKind.OUTPUT,
            shape=(8,),
            starts_in=DRAM if n < 2 else None,
            ends_in=DRAM if n >= 2 else None,
            place=Place(n // 2, (8 * (n % 2),)),
        )
        for n in range(4)
    )
    return problem_of(
        2,
        buffers,
        Task(index=0, name="left", cycles=(10,), reads=(0,), writes=(2,)),
        Task(index=1, name="right", cycles=(10,), reads=(1,), writes=(3,), after=after),
    )
