"""A plan small enough to be worked out by hand.

Core 0 computes ``mid`` (64 B at address 0) from ``x`` (32 B at address 64) during [10, 30); core 1
gets it by DMA and computes ``y`` in place during [40, 60); a transfer stores it until cycle 72.
"""

from dataclasses import replace
from fractions import Fraction

from spmilp.machine.machine import ByteRange, Core, CoreKind, Engine, Machine, Memory, MemoryKind
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Transfer
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.problem import Problem, Tile


def two_cores() -> Machine:
    spm = {"kind": MemoryKind.SPM, "size": 256, "reserved": (ByteRange(240, 256),), "banks": 2}
    return Machine(
        name="duo",
        frequency=1_000_000,
        memories=(
            Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None),
            Memory(index=1, name="spm0", **spm),
            Memory(index=2, name="spm1", **spm),
        ),
        kinds=(CoreKind(index=0, name="plain"),),
        cores=(
            Core(index=0, name="left", kind=0, memory=1),
            Core(index=1, name="right", kind=0, memory=2),
        ),
        engines=(Engine(index=0, name="dma", owner=None, channels=2, rate=Fraction(8)),),
        unverified=("dma.rate",),
    )


def duo_problem() -> Problem:
    b = ProblemBuilder(two_cores(), name="cost_$x$")
    mid = b.task("conv[0]", reads=b.input("x", (32,)), writes=("mid", 64, "int8"), cycles=20)
    b.output(
        b.task("relu[0]", reads=mid, writes=("y", 64, "int8"), cycles=20, in_place=[(mid, "y")])
    )
    problem = b.build()
    tiles = (Tile(of=name, box=((0, 64),)) for name in ("conv", "relu"))
    tasks = zip(problem.tasks, tiles, strict=True)
    return replace(problem, tasks=tuple(replace(task, tile=tile) for task, tile in tasks))


def duo_plan() -> Plan:
    residencies = (  # slice, memory, offset, bytes, start, end, what fills it
        (0, 0, 0, 32, 0, 10, {}),
        (0, 1, 64, 32, 2, 30, {"filled_by_transfer": 0}),
        (1, 1, 0, 64, 10, 40, {"filled_by_task": 0}),
        (1, 2, 128, 64, 30, 60, {"filled_by_transfer": 1}),
        (2, 2, 128, 64, 40, 72, {"filled_by_task": 1}),
        (2, 0, 64, 64, 60, 72, {"filled_by_transfer": 2}),
    )
    transfers = ((0, 0, 1, 0, 2, 10), (1, 2, 3, 1, 30, 40), (2, 4, 5, 0, 60, 72))
    return Plan(
        placements=(
            Placement(task=0, core=0, start=10, end=30, reads=(1,), writes=(2,)),
            Placement(task=1, core=1, start=40, end=60, reads=(3,), writes=(4,)),
        ),
        residencies=tuple(
            Residency(
                index=index, slice=part, memory=memory, offset=offset, bytes=size,
                start=start, end=end, **filled,
            )
            for index, (part, memory, offset, size, start, end, filled) in enumerate(residencies)
        ),
        transfers=tuple(
            Transfer(
                index=index, slice=part, source=source, destinations=(end,), engine=0,
                channel=channel, start=start, sent=last, end=last, route=(),
            )
            for index, (part, source, end, channel, start, last) in enumerate(transfers)
        ),
        tensors=(0, 64),
        claim=Claim(
            makespan=72, dram_traffic=96, energy=0, peak_spm=192,
            bound=54, bound_source="critical path",
        ),
        solver="by hand",
    )  # fmt: skip
