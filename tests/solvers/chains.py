"""Small tiled convolution chains, built by hand."""

from fractions import Fraction
from typing import Any

from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.problem.problem import (
    Buffer,
    BufferKind,
    DramTensor,
    Place,
    Problem,
    Slice,
    Task,
    Tile,
    whole_slice,
)


def star(cores: int, spm: int, rate: int = 8, setup: int = 4) -> Machine:
    """Return cores with a scratchpad each around one switch, and a DRAM at ``rate``."""
    memories = [Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None)]
    memories += [
        Memory(index=1 + c, name=f"spm{c}", kind=MemoryKind.SPM, size=spm) for c in range(cores)
    ]
    ends = [
        (name, way)
        for name in [memory.name for memory in memories]
        for way in ((name, "switch"), ("switch", name))
    ]
    return Machine(
        name="star",
        memories=tuple(memories),
        kinds=(CoreKind(index=0, name="core"),),
        cores=tuple(Core(index=c, name=f"core{c}", kind=0, memory=1 + c) for c in range(cores)),
        links=tuple(
            Link(index=i, source=a, target=b, rate=Fraction(rate), latency=1)
            for i, (_, (a, b)) in enumerate(ends)
        ),
        engines=tuple(
            Engine(
                index=c, name=f"dma{c}", owner=1 + c, channels=2, setup=setup, rate=Fraction(rate)
            )
            for c in range(cores)
        ),
    )


def chain(
    machine: Machine, layers: int, strips: int, rows: int = 4, row: int = 64, weights: int = 256
) -> Problem:
    """Return convolutions over strips, each reading a halo row on both sides."""
    tensors, buffers, slices, tasks = [], [], [], []
    halos: list[tuple[int, int]] = []

    def tensor(name: str, kind: BufferKind, shape: tuple[int, ...]) -> int:
        index = len(tensors)
        tensors.append(DramTensor(index=index, name=name, kind=kind, memory=0, shape=shape, item=1))
        return index

    source = tensor("in", BufferKind.INPUT, (strips * rows, row))
    sink = tensor("out", BufferKind.OUTPUT, (strips * rows, row))
    filters = [tensor(f"w{n}", BufferKind.WEIGHT, (weights,)) for n in range(layers)]

    def buffer(name: str, kind: BufferKind, shape: tuple[int, ...], **place: Any) -> int:
        index = len(buffers)
        buffers.append(Buffer(index=index, name=name, kind=kind, shape=shape, **place))
        return index

    def strip_of(level: int, strip: int) -> int:
        start, where = (strip * rows, 0), {}
        if level == 0:
            where = {"starts_in": 0, "place": Place(source, start)}
        elif level == layers:
            where = {"ends_in": 0, "place": Place(sink, start)}
        return buffer(f"t{level}[{strip}]", BufferKind.INTERMEDIATE, (rows, row), **where)

    maps = [[strip_of(level, strip) for strip in range(strips)] for level in range(layers + 1)]
    loaded = [
        buffer(f"w{n}", BufferKind.WEIGHT, (weights,), starts_in=0, place=Place(filters[n], (0,)))
        for n in range(layers)
    ]
    slices.extend(map(whole_slice, buffers))

    def halo(buffer: int, start: int) -> int:
        if (buffer, start) not in halos:
            halos.append((buffer, start))
            slices.append(
                Slice(
                    index=len(slices), buffer=buffer, start=(start, 0), extent=(1, row), bytes=row
                )
            )
        return len(buffers) + halos.index((buffer, start))

    for level in range(layers):
        for strip in range(strips):
            reads = [maps[level][strip], loaded[level]]
            if strip > 0:
                reads.append(halo(maps[level][strip - 1], rows - 1))
            if strip < strips - 1:
                reads.append(halo(maps[level][strip + 1], 0))
            tasks.append(
                Task(
                    index=len(tasks),
                    name=f"conv{level}[{strip}]",
                    cycles=(50,),
                    reads=tuple(reads),
                    writes=(maps[level + 1][strip],),
                    tile=Tile(
                        of=f"conv{level}", box=((strip * rows, (strip + 1) * rows), (0, row))
                    ),
                )
            )
    return Problem(
        name=f"chain of {layers}",
        machine=machine,
        tensors=tuple(tensors),
        buffers=tuple(buffers),
        slices=tuple(slices),
        tasks=tuple(tasks),
    )
