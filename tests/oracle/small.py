"""Small machines and problems, put together by hand.

Scratchpads and DRAM hang on a hub. Their links carry ``rate`` bytes per cycle; the one out of DRAM
and the one into it take a cycle more. Each scratchpad has an engine of 4 bytes per cycle that needs
2 cycles to set up. So at the usual rates 16 bytes hold links in [2, 6); from or to DRAM they have
arrived at 7 and hold the channel until then (until 6 if it is pipelined), from one scratchpad to
another at 6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from spmilp.checker.check import check
from spmilp.machine.machine import (
    ByteRange,
    Core,
    CoreKind,
    Engine,
    Link,
    Machine,
    Memory,
    MemoryKind,
    RemoteReads,
)
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from tests.oracle.solver import BruteForce

DRAM = 0


def machine(
    *sizes: int,
    rate: int = 4,
    kinds: int = 1,
    channels: int = 1,
    pipelined: bool = False,
    between: bool = True,
    alignment: int = 1,
    reserved: tuple[ByteRange, ...] = (),
    remote: RemoteReads | None = None,
) -> Machine:
    """Return scratchpads of these sizes with a core each; core ``c`` is of kind ``c % kinds``."""
    names = ["dram", *(f"spm{n}" for n in range(len(sizes)))]
    memories = [Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None, alignment=alignment)]
    memories += [
        Memory(
            index=1 + n, name=f"spm{n}", kind=MemoryKind.SPM, size=size, alignment=alignment,
            reserved=reserved,
        )
        for n, size in enumerate(sizes)
    ]  # fmt: skip
    legs = [(a, b) for name in names for a, b in ((name, "hub"), ("hub", name))]
    others = tuple(range(1, 1 + len(sizes))) if between else ()
    engines = [
        Engine(
            index=n, name=f"dma{n}", owner=1 + n, channels=channels, setup=2, rate=Fraction(4),
            pipelined=pipelined, reaches=(DRAM, *(m for m in others if m != 1 + n)),
        )
        for n in range(len(sizes))
    ]  # fmt: skip
    return Machine(
        name="small",
        memories=tuple(memories),
        kinds=tuple(CoreKind(index=k, name=f"kind{k}") for k in range(kinds)),
        cores=tuple(
            Core(index=c, name=f"core{c}", kind=c % kinds, memory=1 + c) for c in range(len(sizes))
        ),
        links=tuple(
            Link(index=i, source=a, target=b, rate=Fraction(rate), latency=int("dram" in (a, b)))
            for i, (a, b) in enumerate(legs)
        ),
        engines=tuple(engines),
        remote=remote,
    )


@dataclass
class ProblemSketch:
    """A problem in the making.

    ``task`` refers to buffers by name, and to the first bytes of one as ``("name", bytes)``.
    """

    machine: Machine
    buffers: list[Buffer] = field(default_factory=list)
    parts: list[Slice] = field(default_factory=list)
    tensors: list[DramTensor] = field(default_factory=list)
    tasks: list[dict[str, object]] = field(default_factory=list)

    def buffer(
        self, name: str, size: int, *, starts: int | None = None, ends: int | None = None
    ) -> "ProblemSketch":
        """Add a buffer; one that starts or ends in DRAM has a tensor of its own."""
        place = None
        if DRAM in (starts, ends):
            place = Place(len(self.tensors), (0,))
            self.tensors.append(
                DramTensor(
                    index=len(self.tensors), name=name, kind=BufferKind.INPUT, memory=DRAM,
                    shape=(size,), item=1,
                )
            )  # fmt: skip
        self.buffers.append(
            Buffer(
                index=len(self.buffers), name=name, kind=BufferKind.INTERMEDIATE, shape=(size,),
                starts_in=starts, ends_in=ends, place=place,
            )
        )  # fmt: skip
        return self

    def task(
        self,
        name: str,
        *cycles: int | None,
        reads: Sequence[str | tuple[str, int]] = (),
        writes: Sequence[str] = (),
        in_place: Mapping[str, str] | None = None,
        after: Sequence[int] = (),
        energy: tuple[int | None, ...] = (),
    ) -> "ProblemSketch":
        """Add a task; ``in_place`` names buffers read by the buffers written over them."""
        self.tasks.append(
            {
                "name": name, "cycles": cycles, "reads": reads, "writes": writes,
                "in_place": in_place or {}, "after": tuple(after), "energy": energy,
            }
        )  # fmt: skip
        return self

    def problem(self, first: Quantity = Quantity.MAKESPAN) -> Problem:
        """Return the problem."""
        number = {buffer.name: buffer.index for buffer in self.buffers}
        slices = [
            Slice(index=b.index, buffer=b.index, start=(0,), extent=b.shape, bytes=b.bytes)
            for b in self.buffers
        ]

        def slice_of(read: str | tuple[str, int]) -> int:
            if isinstance(read, str):
                return number[read]
            name, size = read
            for known in slices[len(self.buffers) :]:
                if (known.buffer, known.bytes) == (number[name], size):
                    return known.index
            slices.append(
                Slice(
                    index=len(slices), buffer=number[name], start=(0,), extent=(size,), bytes=size
                )
            )
            return len(slices) - 1

        tasks = tuple(
            Task(
                index=index,
                name=task["name"],
                cycles=task["cycles"],
                reads=tuple(map(slice_of, task["reads"])),
                writes=tuple(number[name] for name in task["writes"]),
                in_place=tuple((number[new], number[old]) for old, new in task["in_place"].items()),
                after=task["after"],
                energy=task["energy"],
            )
            for index, task in enumerate(self.tasks)
        )
        return Problem(
            name="small",
            machine=self.machine,
            tensors=tuple(self.tensors),
            buffers=tuple(self.buffers),
            slices=tuple(slices),
            tasks=tasks,
            objective=Objective.of(first),
        )


def best_plan(problem: Problem) -> Plan:
    """Return the best plan, which brute force must prove and the checker accept."""
    result = solve(problem)
    assert result.status is SolveStatus.OPTIMAL, result.reason
    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert result.bound == result.plan.claim.bound
    return result.plan


def solve(problem: Problem) -> SolverResult:
    return BruteForce().solve(problem, SolveOptions())


def spilling(size: int, first: Quantity) -> Problem:
    """Return tasks of which the second needs 32 bytes while 16 wait for the third."""
    sketch = ProblemSketch(machine(size)).buffer("b", 16, starts=DRAM).buffer("x", 16)
    sketch.buffer("y", 16, ends=DRAM).buffer("z", 16, ends=DRAM)
    sketch.task("t0", 5, writes=["x"]).task("t1", 5, reads=["b"], writes=["y"], after=[0])
    return sketch.task("t2", 5, reads=["x"], writes=["z"], after=[1]).problem(first)
