"""Machines and problems on which it is known what slows a plan down."""

from dataclasses import dataclass
from fractions import Fraction

import spmilp
from spmilp.machine.machine import (
    ByteRange,
    Core,
    CoreKind,
    Engine,
    Link,
    Machine,
    Memory,
    MemoryKind,
)
from spmilp.problem.problem import Problem
from spmilp.result import Result

SPM = 16384


@dataclass(frozen=True, kw_only=True)
class Made:
    """Two cores with a scratchpad each, a DRAM behind one router, and what may be slowed."""

    channels: int = 2
    engine_rate: int = 8
    dram_rate: int = 32
    spm: int = SPM
    reserved: tuple[int, int] = (0, 0)

    def machine(self) -> Machine:
        pads = [
            Memory(
                index=1 + core,
                name=f"spm{core}",
                kind=MemoryKind.SPM,
                size=self.spm,
                reserved=(ByteRange(0, taken),) if taken else (),
            )
            for core, taken in enumerate(self.reserved)
        ]
        ways = [("dram", "hub", self.dram_rate), ("hub", "dram", self.dram_rate)]
        for pad in pads:
            ways += [("hub", pad.name, 32), (pad.name, "hub", 32)]
        return Machine(
            name="pair",
            memories=(Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None), *pads),
            kinds=(CoreKind(index=0, name="plain"),),
            cores=tuple(Core(index=c, name=f"core{c}", kind=0, memory=1 + c) for c in range(2)),
            links=tuple(
                Link(index=index, source=source, target=target, rate=Fraction(rate))
                for index, (source, target, rate) in enumerate(ways)
            ),
            engines=tuple(
                Engine(
                    index=core,
                    name=f"dma{core}",
                    owner=1 + core,
                    channels=self.channels,
                    rate=Fraction(self.engine_rate),
                )
                for core in range(2)
            ),
        )


def independent_tasks(made: Made, *, cycles: int, read: int, tasks: int = 8) -> Problem:
    """Return tasks that read something each and write 16 B, all of which one last task reads."""
    builder = spmilp.ProblemBuilder(made.machine(), name="independent")
    parts = []
    for task in range(tasks):
        x = builder.input(f"x{task}", (read,))
        part = (f"y{task}", (16,), "int8")
        parts.append(builder.task(f"t{task}", reads=x, writes=part, cycles=cycles))
    last = builder.task("sum", reads=parts, writes=("y", (16,), "int8"), cycles=10)
    builder.output(last)
    return builder.build()


def listed(problem: Problem) -> Result:
    """Return the plan of the list scheduler."""
    result = spmilp.solve(problem, solver="list", time_limit=None)
    assert result.plan is not None
    return result
