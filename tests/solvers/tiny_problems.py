"""Random problems so small that all plans can be searched; each number gives one, always the same.

Among the first few hundred numbers everything that the format allows occurs: cores with scratchpads
of their own or shared, a shared memory on the way to DRAM, tight and ample memories, reserved
bytes, alignment, one and two kinds of cores, rates below one byte per cycle, links in common,
pipelined engines, remote reads, multicast, pairs in place, slices, scratch, precedences without
data, weights that start in a scratchpad, engines with few dimensions, short transfers or congruent
addresses.
"""

from fractions import Fraction
from random import Random
from typing import Any

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
from spmilp.problem.objective import OF_ONE_INFERENCE, Objective
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task

DRAM = 0


def tiny_problem(number: int, most_tasks: int = 3) -> Problem:
    """Return the problem of a number."""
    random = Random(number)
    machine = tiny_machine(random)
    return Problem(
        name=f"tiny {number}",
        machine=machine,
        objective=Objective.of(list(OF_ONE_INFERENCE)[number % 4]),
        **_contents(random, machine, random.randint(1, most_tasks)),
    )


def tiny_machine(random: Random) -> Machine:
    """Return one to three scratchpads around a hub, at DRAM or behind a shared memory."""
    spms = random.choice([1, 1, 2, 2, 2, 3])
    staged = random.random() < 0.15
    alignment = random.choice([1, 1, 4])
    size = random.choice([24, 32, 40, 48, 64, 256])
    reserved = random.choice([(), (), (ByteRange(0, 4),), (ByteRange(8, 12),)])
    memories = [Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None, energy_per_byte=9)]
    memories += [
        Memory(
            index=1 + n, name=f"spm{n}", kind=MemoryKind.SPM, size=size, alignment=alignment,
            reserved=reserved, energy_per_byte=1,
        )
        for n in range(spms)
    ]  # fmt: skip
    if staged:
        memories.append(
            Memory(index=1 + spms, name="l2", kind=MemoryKind.SHARED, size=64, energy_per_byte=3)
        )
    rate = Fraction(random.choice([2, 4]), random.choice([1, 1, 3]))
    between = random.random() < 0.7
    copies = random.random() < 0.2
    above = 1 + spms if staged else DRAM
    engines = [
        Engine(
            index=n,
            name=f"dma{n}",
            owner=1 + n,
            reaches=(above, *(m for m in range(1, 1 + spms) if between and (m != 1 + n or copies))),
            channels=random.choice([1, 1, 2]),
            setup=random.choice([0, 1, 3]),
            pipelined=(size // 8 + n) % 2 == 0,
            rate=rate * random.choice([1, 1, 2]),
            dimensions=random.choice([None, None, None, 1]),
            congruence=random.choice([1] * 19 + [4]),
            longest=random.choice([None] * 5 + [16]),
        )
        for n in range(spms)
    ]
    if staged:
        engines.append(Engine(index=spms, name="top", owner=above, reaches=(DRAM,), rate=rate))
    if spms > 1 and random.random() < 0.3:
        reaches = tuple(range(1 + spms))
        engines.append(
            Engine(
                index=len(engines), name="caster", owner=above, reaches=reaches, loads=False,
                setup=1, rate=rate, multicast=True,
            )
        )  # fmt: skip
    kinds = random.choice([1, 1, 2])
    cores = random.choice([spms, spms, spms + 1])
    hub = [(a, b) for memory in memories for a, b in ((memory.name, "hub"), ("hub", memory.name))]
    return Machine(
        name="tiny",
        memories=tuple(memories),
        kinds=tuple(CoreKind(index=k, name=f"kind{k}") for k in range(kinds)),
        cores=tuple(
            Core(index=c, name=f"core{c}", kind=c % kinds, memory=1 + c % spms)
            for c in range(cores)
        ),
        links=tuple(
            Link(index=i, source=a, target=b, rate=rate, latency=i % 3, energy_per_byte=1)
            for i, (a, b) in enumerate(hub)
        ),
        engines=tuple(engines),
        remote=RemoteReads(cycles_per_byte_hop=Fraction(1, random.choice([2, 8])))
        if spms > 1 and random.random() < 0.3
        else None,
    )  # fmt: skip


def _contents(random: Random, machine: Machine, count: int) -> dict[str, tuple[Any, ...]]:
    inputs = random.randint(1, 2)
    buffers: list[Buffer] = []
    tensors: list[DramTensor] = []
    for n in range(inputs + count):
        is_input = n < inputs
        is_last = n == inputs + count - 1
        in_scratchpad = is_input and random.random() < 0.1
        is_output = not is_input and (is_last or random.random() < 0.3)
        rows = random.choice([1, 2, 2, 3])
        place = None
        if (is_input and not in_scratchpad) or is_output:
            place = Place(len(tensors), (random.choice([0, 1]), 0))
            tensors.append(
                DramTensor(
                    index=len(tensors), name=f"tensor{n}", kind=BufferKind.INPUT, memory=DRAM,
                    shape=(rows + 1, 8 + random.choice([0, 0, 2])), item=1,
                )
            )  # fmt: skip
        buffers.append(
            Buffer(
                index=n,
                name=f"b{n}",
                kind=BufferKind.INTERMEDIATE,
                shape=(rows, 8),
                starts_in=1 if in_scratchpad else DRAM if is_input else None,
                ends_in=DRAM if is_output else None,
                place=place,
            )
        )
    slices = [
        Slice(index=b.index, buffer=b.index, start=(0, 0), extent=b.shape, bytes=b.bytes)
        for b in buffers
    ]
    for buffer in buffers:
        if buffer.shape[0] > 1 and random.random() < 0.3:
            width = random.choice([8, 4])
            slices.append(
                Slice(
                    index=len(slices), buffer=buffer.index, start=(1, 0), extent=(1, width),
                    bytes=width,
                )
            )  # fmt: skip
    kinds = len(machine.kinds)
    tasks = []
    for n in range(count):
        written = inputs + n
        readable = [s.index for s in slices if s.buffer < written]
        reads = tuple(random.sample(readable, min(len(readable), random.choice([1, 1, 2]))))
        pairs = [
            (r, written)
            for r in reads
            if slices[r].bytes == buffers[written].bytes and random.random() < 0.5
        ]
        cycles: list[int | None] = [random.randint(1, 20) for _ in range(kinds)]
        if kinds > 1 and random.random() < 0.3:
            cycles[0 if len(machine.cores) > 1 and random.random() < 0.5 else 1] = None
        tasks.append(
            Task(
                index=n,
                name=f"t{n}",
                cycles=tuple(cycles),
                reads=reads,
                writes=(written,),
                scratch=random.choice([0, 0, 0, 8]),
                in_place=tuple(pairs),
                after=(random.randrange(n),) if n and random.random() < 0.2 else (),
                energy=tuple(random.randint(1, 50) for _ in range(kinds)),
            )
        )
    return {
        "tensors": tuple(tensors),
        "buffers": tuple(buffers),
        "slices": tuple(slices),
        "tasks": tuple(tasks),
    }
