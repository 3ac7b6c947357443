"""Random small problems of every kind that the format allows, as a hypothesis strategy."""

from fractions import Fraction

from hypothesis import strategies as st

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
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task

DRAM = 0


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Cores with own or shared scratchpads, straight at DRAM or behind a shared memory."""
    staged = draw(st.booleans())
    spms = draw(st.integers(1, 3))
    size = draw(st.sampled_from([512, 768, 1024, 4096]))
    alignment = draw(st.sampled_from([1, 4, 16]))
    reserved = draw(st.sampled_from([(), (ByteRange(0, 64),), (ByteRange(128, 160),)]))
    memories = [Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None, alignment=alignment)]
    memories += [
        Memory(
            index=1 + n,
            name=f"spm{n}",
            kind=MemoryKind.SPM,
            size=size,
            alignment=alignment,
            reserved=reserved,
        )
        for n in range(spms)
    ]
    if staged:
        memories.append(
            Memory(
                index=1 + spms, name="l2", kind=MemoryKind.SHARED, size=4096, alignment=alignment
            )
        )
    rate = Fraction(draw(st.sampled_from([4, 8, 16])), draw(st.sampled_from([1, 3])))
    links = [(a, b) for memory in memories for a, b in ((memory.name, "hub"), ("hub", memory.name))]
    setup, channels = draw(st.integers(0, 3)), draw(st.integers(1, 2))
    pipelined = draw(st.integers(0, 3))
    above = 1 + spms if staged else DRAM
    spm_indices = tuple(range(1, 1 + spms))
    engines = [
        Engine(
            index=n,
            name=f"dma{n}",
            owner=1 + n,
            reaches=(above, *spm_indices),
            channels=channels,
            setup=setup * (n % 2 + 1),
            pipelined=pipelined > n,
            rate=rate / draw(st.sampled_from([1, 2])),
        )
        for n in range(spms)
    ]
    if staged:
        engines.append(
            Engine(
                index=spms, name="top", owner=above, reaches=(DRAM,), channels=1, setup=1, rate=rate
            )
        )
    kinds = draw(st.integers(1, 2))
    cores = draw(st.integers(spms, spms + 2))
    return Machine(
        name="random",
        memories=tuple(memories),
        kinds=tuple(CoreKind(index=k, name=f"kind{k}") for k in range(kinds)),
        cores=tuple(
            Core(index=c, name=f"core{c}", kind=c % kinds, memory=1 + c % spms)
            for c in range(cores)
        ),
        links=tuple(
            Link(index=i, source=a, target=b, rate=rate, latency=i % 3)
            for i, (a, b) in enumerate(links)
        ),
        engines=tuple(engines),
    )


@st.composite
def problems(draw: st.DrawFn, most_tasks: int = 12) -> Problem:
    """Tasks that read inputs and each other's buffers or rows of them, some in place."""
    machine = draw(machines())
    inputs = draw(st.integers(1, 3))
    count = draw(st.integers(1, most_tasks))
    row = 16
    buffers: list[Buffer] = []
    tensors: list[DramTensor] = []
    for n in range(inputs + count):
        is_input = n < inputs
        is_output = not is_input and (n == inputs + count - 1 or draw(st.integers(0, 3)) == 0)
        rows = draw(st.integers(1, 4))
        place = None
        if is_input or is_output:
            kind = BufferKind.INPUT if is_input else BufferKind.OUTPUT
            place = Place(len(tensors), (1, 0))
            tensors.append(
                DramTensor(
                    index=len(tensors),
                    name=f"tensor{n}",
                    kind=kind,
                    memory=DRAM,
                    shape=(rows + 2, row + draw(st.sampled_from([0, 4]))),
                    item=1,
                )
            )
        buffers.append(
            Buffer(
                index=n,
                name=f"b{n}",
                kind=BufferKind.INTERMEDIATE,
                shape=(rows, row),
                starts_in=DRAM if is_input else None,
                ends_in=DRAM if is_output else None,
                place=place,
            )
        )
    slices = [
        Slice(index=b.index, buffer=b.index, start=(0, 0), extent=b.shape, bytes=b.bytes)
        for b in buffers
    ]
    for buffer in buffers:
        if buffer.shape[0] > 1 and draw(st.booleans()):
            width = draw(st.sampled_from([row, row // 2]))
            slices.append(
                Slice(
                    index=len(slices),
                    buffer=buffer.index,
                    start=(1, 0),
                    extent=(1, width),
                    bytes=width,
                )
            )
    tasks = []
    for n in range(count):
        written = inputs + n
        readable = [s.index for s in slices if s.buffer < written]
        reads = tuple(draw(st.lists(st.sampled_from(readable), max_size=3, unique=True)))
        over = [
            (r, written)
            for r in reads
            if slices[r].bytes == buffers[written].bytes and draw(st.booleans())
        ]
        cycles: list[int | None] = [draw(st.integers(1, 40)) for _ in machine.kinds]
        if len(cycles) > 1 and len(machine.cores) > 1 and draw(st.booleans()):
            cycles[1] = None
        tasks.append(
            Task(
                index=n,
                name=f"t{n}",
                cycles=tuple(cycles),
                reads=reads,
                writes=(written,),
                scratch=draw(st.sampled_from([0, 0, 24])),
                in_place=tuple(over),
                after=(draw(st.integers(0, n - 1)),) if n and draw(st.booleans()) else (),
            )
        )
    return Problem(
        name="random",
        machine=machine,
        tensors=tuple(tensors),
        buffers=tuple(buffers),
        slices=tuple(slices),
        tasks=tuple(tasks),
    )
