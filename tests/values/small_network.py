"""A convolution of 3 x 3 over six rows, then a Relu: the smallest network with a halo.

It is tiled into two strips of rows. Each strip of the convolution reads its own three rows of the
input and one row of its neighbour's.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.frontend.graph import Group, Network, Operator, Tensor
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
from spmilp.units import Box
from values.sequential import DRAM, MACHINE, Script

FLOAT = np.dtype(np.float32)
WEIGHT: NDArray[np.float32] = np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3) / 8 - 1
STRIPS: tuple[Box, Box] = (
    ((0, 1), (0, 1), (0, 3), (0, 4)),
    ((0, 1), (0, 1), (3, 6), (0, 4)),
)

CONV = Operator(
    name="conv",
    kind="Conv",
    inputs=("x", "w"),
    output="y",
    attributes={
        "kernel_shape": (3, 3),
        "strides": (1, 1),
        "dilations": (1, 1),
        "pads": (1, 1, 1, 1),
        "group": 1,
    },
)
RELU = Operator(name="relu", kind="Relu", inputs=("y",), output="z")

NETWORK = Network(
    name="small",
    tensors={
        "x": Tensor(name="x", shape=(1, 2, 6, 4), dtype=FLOAT),
        "w": Tensor(name="w", shape=(1, 2, 3, 3), dtype=FLOAT, data=WEIGHT),
        "y": Tensor(name="y", shape=(1, 1, 6, 4), dtype=FLOAT),
        "z": Tensor(name="z", shape=(1, 1, 6, 4), dtype=FLOAT),
    },
    groups=(
        Group(index=0, name="conv", operators=(CONV,), anchor=0, inputs=("x", "w"), output="y"),
        Group(index=1, name="relu", operators=(RELU,), anchor=0, inputs=("y",), output="z"),
    ),
    inputs=("x",),
    outputs=("z",),
    sha256="",
)


def some_inputs() -> dict[str, NDArray[Any]]:
    """Return values for the network's input."""
    return {"x": np.random.default_rng(1).normal(size=(1, 2, 6, 4)).astype(np.float32)}


def tensor(index: int, name: str, kind: BufferKind, shape: tuple[int, ...]) -> DramTensor:
    """Return a float32 tensor in DRAM."""
    return DramTensor(index=index, name=name, kind=kind, memory=DRAM, shape=shape, item=4)


def buffer(
    index: int,
    of: str,
    box: Box,
    kind: BufferKind = BufferKind.INTERMEDIATE,
    home: int | None = None,
    **more: Any,
) -> Buffer:
    """Return a float32 buffer; one with a home starts there, an output ends there."""
    shape = tuple(stop - start for start, stop in box)
    ends = kind is BufferKind.OUTPUT
    place = None if home is None else Place(home, tuple(start for start, _ in box))
    return Buffer(
        index=index,
        name=f"{of}{index}",
        kind=kind,
        **{
            "shape": shape,
            "item": 4,
            "starts_in": DRAM if home is not None and not ends else None,
            "ends_in": DRAM if ends else None,
            "place": place,
            "tile": Tile(of=of, box=box),
            **more,
        },
    )


def whole_slices(buffers: tuple[Buffer, ...]) -> tuple[Slice, ...]:
    """Return the slices that are whole buffers."""
    return tuple(map(whole_slice, buffers))


def part(index: int, of: int, start: tuple[int, ...], extent: tuple[int, ...]) -> Slice:
    """Return a slice of float32 elements."""
    return Slice(index=index, buffer=of, start=start, extent=extent, bytes=4 * int(np.prod(extent)))


def two_strips() -> Problem:
    """Return the network in two strips.

    Buffers: 0, 1 rows of x; 2 w; 3, 4 strips of y; 5, 6 strips of z. Slices 7 and 8 are the halos:
    the last row of buffer 0 and the first of buffer 1. Tasks 0, 1 are the convolution, 2, 3 the
    Relu, which may work in place.
    """
    rows = (((0, 1), (0, 2), (0, 3), (0, 4)), ((0, 1), (0, 2), (3, 6), (0, 4)))
    buffers = (
        buffer(0, "x", rows[0], BufferKind.INPUT, 0),
        buffer(1, "x", rows[1], BufferKind.INPUT, 0),
        buffer(2, "w", ((0, 1), (0, 2), (0, 3), (0, 3)), BufferKind.WEIGHT, 1),
        buffer(3, "y", STRIPS[0]),
        buffer(4, "y", STRIPS[1]),
        buffer(5, "z", STRIPS[0], BufferKind.OUTPUT, 2),
        buffer(6, "z", STRIPS[1], BufferKind.OUTPUT, 2),
    )
    halos = (
        part(7, 0, (0, 0, 2, 0), (1, 2, 1, 4)),
        part(8, 1, (0, 0, 0, 0), (1, 2, 1, 4)),
    )
    tasks = (
        task(0, "conv", STRIPS[0], (0, 8, 2), (3,)),
        task(1, "conv", STRIPS[1], (1, 7, 2), (4,)),
        task(2, "relu", STRIPS[0], (3,), (5,), in_place=((3, 5),)),
        task(3, "relu", STRIPS[1], (4,), (6,), in_place=((4, 6),)),
    )
    return Problem(
        name="two strips",
        machine=MACHINE,
        tensors=(
            tensor(0, "x", BufferKind.INPUT, (1, 2, 6, 4)),
            tensor(1, "w", BufferKind.WEIGHT, (1, 2, 3, 3)),
            tensor(2, "z", BufferKind.OUTPUT, (1, 1, 6, 4)),
        ),
        buffers=buffers,
        slices=(*whole_slices(buffers), *halos),
        tasks=tasks,
    )


def task(
    index: int,
    of: str,
    box: Box,
    reads: tuple[int, ...],
    writes: tuple[int, ...],
    reduction: tuple[int, int] | None = None,
    in_place: tuple[tuple[int, int], ...] = (),
) -> Task:
    """Return a task that computes a box of a group."""
    return Task(
        index=index,
        name=f"{of}{index}",
        cycles=(10,),
        reads=reads,
        writes=writes,
        in_place=in_place,
        tile=Tile(of=of, box=box, reduction=reduction),
    )


def script_of_two_strips(problem: Problem, in_place: bool = True) -> Script:
    """Write the plan of two strips: halo rows come as packed slices of their own."""
    script = Script(problem, (1000, 2000, 3000))
    home = [script.initial(index) for index in (0, 1, 2)]
    weight = script.load(2, home[2])
    for strip, halo in ((0, 8), (1, 7)):
        rows = script.load(strip, home[strip])
        row = script.load(halo, home[1 - strip])
        (sums,) = script.run(strip, [rows, row, weight])
        offset = {5 + strip: script.residencies[sums].offset} if in_place else None
        (result,) = script.run(2 + strip, [sums], offset)
        script.store(5 + strip, result)
    return script
