"""A small valid plan by hand that uses everything a plan can have.

Two scratchpads behind an L2: core c0 works in spm0, cores c1 and c2 share spm1. Loads from DRAM
stop in the L2; x0 is multicast to both scratchpads; b replaces a in place; c1 reads b remotely; c
is spilled to DRAM and loaded again; y0 and y1 are the left and right half of the output y. Sources
end when all is sent; the DMA at DRAM, which is pipelined, takes x1 while x0 is on its way.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

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
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task, Tile

DRAM, L2, SPM0, SPM1 = range(4)
DRAM_DMA, L2_DMA, CORE_DMA = range(3)
X0, X1, W, A, B, C, Y0, Y1, X0_LEFT, X1_TOP = range(10)

MACHINE = Machine(
    name="two scratchpads behind an L2",
    frequency=1_000_000_000,
    memories=(
        Memory(
            index=DRAM, name="dram", kind=MemoryKind.DRAM, size=None, alignment=64,
            energy_per_byte=100,
        ),
        Memory(
            index=L2, name="l2", kind=MemoryKind.SHARED, size=256, alignment=16, energy_per_byte=10
        ),
        Memory(
            index=SPM0, name="spm0", kind=MemoryKind.SPM, size=512, alignment=16,
            reserved=(ByteRange(0, 64),), energy_per_byte=1,
        ),
        Memory(
            index=SPM1, name="spm1", kind=MemoryKind.SPM, size=512, alignment=16,
            reserved=(ByteRange(0, 64),), banks=4, energy_per_byte=1,
        ),
    ),
    kinds=(CoreKind(index=0, name="big", launch=2), CoreKind(index=1, name="small")),
    cores=(
        Core(index=0, name="c0", kind=0, memory=SPM0, position=(0, 0)),
        Core(index=1, name="c1", kind=0, memory=SPM1, position=(1, 0)),
        Core(index=2, name="c2", kind=1, memory=SPM1),
    ),
    links=(
        Link(index=0, source="dram", target="l2", rate=Fraction(8), latency=4, energy_per_byte=5),
        Link(index=1, source="l2", target="dram", rate=Fraction(8), latency=4, energy_per_byte=5),
        Link(index=2, source="l2", target="r", rate=Fraction(4), latency=1, energy_per_byte=1),
        Link(index=3, source="r", target="l2", rate=Fraction(4), latency=1, energy_per_byte=1),
        Link(index=4, source="r", target="spm0", rate=Fraction(4), latency=1, energy_per_byte=1),
        Link(index=5, source="spm0", target="r", rate=Fraction(4), latency=1, energy_per_byte=1),
        Link(index=6, source="r", target="spm1", rate=Fraction(4), latency=1, energy_per_byte=1),
        Link(index=7, source="spm1", target="r", rate=Fraction(4), latency=1, energy_per_byte=1),
    ),
    engines=(
        Engine(
            index=DRAM_DMA, name="dram_dma", owner=L2, reaches=(DRAM,), setup=2, rate=Fraction(8),
            pipelined=True, dimensions=2,
        ),
        Engine(
            index=L2_DMA, name="l2_dma", owner=L2, reaches=(SPM0, SPM1), channels=2, setup=1,
            rate=Fraction(2), longest=64, multicast=True,
        ),
        Engine(
            index=CORE_DMA, name="core_dma", owner=SPM0, reaches=(SPM1,), setup=1, rate=Fraction(4),
            congruence=32, dimensions=1,
        ),
    ),
    remote=RemoteReads(cycles_per_byte_hop=Fraction(1, 8), longest_route=2),
)  # fmt: skip


def _buffer(index: int, name: str, kind: BufferKind, shape: tuple[int, ...], **more: Any) -> Buffer:
    return Buffer(index=index, name=name, kind=kind, shape=shape, **more)


def _whole(buffer: Buffer) -> Slice:
    return Slice(
        index=buffer.index, buffer=buffer.index, start=(0,) * len(buffer.shape),
        extent=buffer.shape, bytes=buffer.bytes,
    )  # fmt: skip


BUFFERS = (
    _buffer(X0, "x0", BufferKind.INPUT, (4, 16), starts_in=DRAM, place=Place(0, (0, 0))),
    _buffer(X1, "x1", BufferKind.INPUT, (4, 16), starts_in=DRAM, place=Place(0, (4, 0))),
    _buffer(W, "w", BufferKind.WEIGHT, (64,), starts_in=SPM0),
    _buffer(A, "a", BufferKind.INTERMEDIATE, (4, 8)),
    _buffer(B, "b", BufferKind.PARTIAL, (4, 8)),
    _buffer(C, "c", BufferKind.INTERMEDIATE, (4, 16)),
    _buffer(
        Y0, "y0", BufferKind.OUTPUT, (4, 8), ends_in=DRAM, place=Place(1, (0, 0)),
        tile=Tile(of="y", box=((0, 4), (0, 8))),
    ),
    _buffer(
        Y1, "y1", BufferKind.OUTPUT, (4, 8), ends_in=DRAM, place=Place(1, (0, 8)),
        tile=Tile(of="y", box=((0, 4), (8, 16)), axes=(0, 1)),
    ),
)  # fmt: skip

PROBLEM = Problem(
    name="worked example",
    machine=MACHINE,
    tensors=(
        DramTensor(index=0, name="x", kind=BufferKind.INPUT, memory=DRAM, shape=(8, 16), item=1),
        DramTensor(index=1, name="y", kind=BufferKind.OUTPUT, memory=DRAM, shape=(4, 16), item=1),
    ),
    buffers=BUFFERS,
    slices=(
        *(_whole(buffer) for buffer in BUFFERS),
        Slice(index=X0_LEFT, buffer=X0, start=(0, 0), extent=(4, 8), bytes=32),
        Slice(index=X1_TOP, buffer=X1, start=(0, 0), extent=(2, 16), bytes=32),
    ),
    tasks=(
        Task(
            index=0, name="first", cycles=(20, None), reads=(W, X0), writes=(A,), scratch=32,
            energy=(1000, None), tile=Tile(of="conv", box=((0, 4),), reduction=(0, 3)),
        ),
        Task(index=1, name="add", cycles=(10, 20), reads=(A,), writes=(B,), in_place=((A, B),)),
        Task(index=2, name="left", cycles=(10, None), reads=(X0, B), writes=(Y0,)),
        Task(index=3, name="pool", cycles=(8, 10), reads=(X0_LEFT, X1_TOP), writes=(C,)),
        Task(
            index=4, name="right", cycles=(10, None), reads=(C, W), writes=(Y1,), after=(0,),
            energy=(None, 5),
        ),
    ),
    sources=(("model", "ab" * 32), ("machine", "cd" * 32)),
)  # fmt: skip


def _stay(
    index: int,
    slice_: int | None,
    memory: int,
    offset: int,
    start: int,
    end: int,
    task: int | None = None,
    transfer: int | None = None,
) -> Residency:
    return Residency(
        index=index, slice=slice_, memory=memory, offset=offset, start=start, end=end,
        bytes=32 if slice_ is None else PROBLEM.slices[slice_].bytes,
        filled_by_task=task, filled_by_transfer=transfer,
    )  # fmt: skip


def _move(
    index: int,
    slice_: int,
    source: int,
    destinations: tuple[int, ...],
    engine: int,
    channel: int,
    start: int,
    sent: int,
    end: int,
    route: tuple[int, ...],
) -> Transfer:
    return Transfer(
        index=index, slice=slice_, source=source, destinations=destinations, engine=engine,
        channel=channel, start=start, sent=sent, end=end, route=route,
    )  # fmt: skip


PLAN = Plan(
    placements=(
        Placement(task=0, core=0, start=49, end=69, reads=(7, 2), writes=(8,), scratch=9),
        Placement(task=1, core=0, start=69, end=79, reads=(8,), writes=(10,)),
        # 10 cycles and 32 B * 2 hops / 8 for reading b in spm0
        Placement(task=2, core=1, start=79, end=97, reads=(3, 10), writes=(11,)),
        Placement(task=3, core=2, start=49, end=59, reads=(3, 6), writes=(12,)),
        Placement(task=4, core=1, start=157, end=167, reads=(16, 22), writes=(19,)),
    ),
    residencies=(
        _stay(0, X0, DRAM, 0, 0, 10),
        _stay(1, X0, L2, 0, 0, 47, transfer=0),
        _stay(2, X0, SPM0, 64, 14, 69, transfer=1),
        _stay(3, X0, SPM1, 64, 14, 97, transfer=1),
        _stay(4, X1, DRAM, 64, 0, 16),
        _stay(5, X1_TOP, L2, 64, 10, 41, transfer=2),
        _stay(6, X1_TOP, SPM1, 128, 24, 59, transfer=3),
        _stay(7, W, SPM0, 128, 0, 69),
        _stay(8, A, SPM0, 192, 49, 79, task=0),
        _stay(9, None, SPM0, 224, 49, 69),
        _stay(10, B, SPM0, 192, 69, 97, task=1),
        _stay(11, Y0, SPM1, 128, 79, 114, task=2),
        _stay(12, C, SPM1, 192, 49, 92, task=3),
        _stay(13, C, L2, 128, 59, 104, transfer=4),
        _stay(14, C, DRAM, 192, 94, 118, transfer=5),
        _stay(15, C, L2, 192, 108, 155, transfer=6),
        _stay(16, C, SPM1, 64, 122, 167, transfer=7),
        _stay(17, Y0, L2, 0, 97, 128, transfer=8),
        _stay(18, Y0, DRAM, 128, 122, 196, transfer=9),
        _stay(19, Y1, SPM1, 128, 157, 184, task=4),
        _stay(20, Y1, L2, 0, 167, 192, transfer=10),
        _stay(21, Y1, DRAM, 136, 186, 196, transfer=11),
        _stay(22, W, SPM1, 256, 49, 167, transfer=12),
    ),
    transfers=(
        _move(0, X0, 0, (1,), DRAM_DMA, 0, 0, 10, 14, (0,)),
        _move(1, X0, 1, (2, 3), L2_DMA, 0, 14, 47, 49, (2, 4, 6)),
        _move(2, X1_TOP, 4, (5,), DRAM_DMA, 0, 10, 16, 20, (0,)),
        _move(3, X1_TOP, 5, (6,), L2_DMA, 1, 24, 41, 43, (2, 6)),
        _move(4, C, 12, (13,), L2_DMA, 0, 59, 92, 94, (7, 3)),
        _move(5, C, 13, (14,), DRAM_DMA, 0, 94, 104, 108, (1,)),
        _move(6, C, 14, (15,), DRAM_DMA, 0, 108, 118, 122, (0,)),
        _move(7, C, 15, (16,), L2_DMA, 0, 122, 155, 157, (2, 6)),
        _move(8, Y0, 11, (17,), L2_DMA, 0, 97, 114, 116, (7, 3)),
        _move(9, Y0, 17, (18,), DRAM_DMA, 0, 122, 128, 132, (1,)),
        _move(10, Y1, 19, (20,), L2_DMA, 0, 167, 184, 186, (7, 3)),
        _move(11, Y1, 20, (21,), DRAM_DMA, 0, 186, 192, 196, (1,)),
        _move(12, W, 7, (22,), CORE_DMA, 0, 49, 66, 68, (5, 6)),
    ),
    tensors=(0, 128),
    claim=Claim(
        makespan=196, dram_traffic=288, energy=38_248, peak_spm=320,
        bound=118, bound_source="critical path",
    ),
    solver="hand",
    options=(("seed", "0"),),
)  # fmt: skip


def changed(plan: Plan = PLAN, **tables: dict[int, dict[str, Any]]) -> Plan:
    """Return a plan with fields of some placements, residencies or transfers replaced."""
    new: dict[str, Any] = {}
    for table, changes in tables.items():
        rows = list(getattr(plan, table))
        for index, fields in changes.items():
            rows[index] = replace(rows[index], **fields)
        new[table] = tuple(rows)
    return replace(plan, **new)


def with_engine(index: int, problem: Problem = PROBLEM, **fields: Any) -> Problem:
    """Return the problem on a machine with an engine of other limits."""
    engines = list(problem.machine.engines)
    engines[index] = replace(engines[index], **fields)
    return replace(problem, machine=replace(problem.machine, engines=tuple(engines)))


def with_machine(**fields: Any) -> Problem:
    """Return the problem on another machine."""
    return replace(PROBLEM, machine=replace(MACHINE, **fields))


def with_task(index: int, more: tuple[Slice, ...] = (), **fields: Any) -> Problem:
    """Return the problem with another task, and with more slices."""
    tasks = list(PROBLEM.tasks)
    tasks[index] = replace(tasks[index], **fields)
    return replace(PROBLEM, tasks=tuple(tasks), slices=(*PROBLEM.slices, *more))


def broken(plan: Plan, problem: Problem = PROBLEM) -> dict[str, list[str]]:
    """Return the messages of the checker by rule."""
    found: dict[str, list[str]] = {}
    for violation in check(problem, plan):
        found.setdefault(violation.rule, []).append(violation.message)
    return found
