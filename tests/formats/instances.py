"""Problems of any shape for the tests of files."""

from math import prod
from typing import Any

from hypothesis import strategies as st

from checker.worked_example import MACHINE
from spmilp.problem.objective import OF_ONE_INFERENCE, Objective, Quantity
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task, Tile

NAMES = st.text(max_size=8)
SMALL = st.integers(0, 9)


@st.composite
def tiles(draw: st.DrawFn) -> Tile | None:
    if draw(st.booleans()):
        return None
    interval = st.tuples(st.integers(-3, 9), SMALL)
    return Tile(
        of=draw(NAMES),
        box=tuple(draw(st.lists(interval, max_size=4))),
        axes=tuple(draw(st.lists(SMALL, max_size=4))),
        reduction=draw(st.none() | interval),
    )


@st.composite
def _shapes(draw: st.DrawFn) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 5), max_size=4)))


@st.composite
def _boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    start = tuple(draw(st.integers(0, length - 1)) for length in shape)
    extent = tuple(
        draw(st.integers(1, length - first)) for first, length in zip(start, shape, strict=True)
    )
    return start, extent


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Tasks that read what starts in memory and write buffers of their own, in any number."""
    kinds = st.sampled_from(BufferKind)
    buffers = []
    tensors = [
        DramTensor(
            index=index, name=draw(NAMES), kind=draw(kinds), memory=0, shape=draw(_shapes()),
            item=draw(st.integers(1, 4)),
        )
        for index in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    for index in range(draw(st.integers(0, 5))):
        fields: dict[str, Any] = {"shape": draw(_shapes()), "item": draw(st.integers(1, 4))}
        fields["starts_in"] = draw(st.integers(1, 3))
        if tensors and draw(st.booleans()):
            tensor = draw(st.sampled_from(tensors))
            start, shape = draw(_boxes(tensor.shape))
            fields = {"shape": shape, "item": tensor.item, "place": Place(tensor.index, start)}
            fields |= {"starts_in": 0, "ends_in": draw(st.none() | st.integers(0, 3))}
        buffers.append(
            Buffer(index=index, name=draw(NAMES), kind=draw(kinds), tile=draw(tiles()), **fields)
        )
    started = len(buffers)
    count = draw(st.integers(0, 4))
    buffers += [
        Buffer(index=index, name=draw(NAMES), kind=draw(kinds), shape=draw(_shapes()))
        for index in range(started, started + count)
    ]
    slices = [
        Slice(
            index=b.index, buffer=b.index, start=(0,) * len(b.shape), extent=b.shape, bytes=b.bytes
        )
        for b in buffers
    ]
    for _ in range(draw(st.integers(0, 4)) if buffers else 0):
        parent = draw(st.sampled_from(buffers))
        start, extent = draw(_boxes(parent.shape))
        slices.append(
            Slice(
                index=len(slices), buffer=parent.index, start=start, extent=extent,
                bytes=prod(extent) * parent.item,
            )
        )  # fmt: skip
    readable = [slice_.index for slice_ in slices if slice_.buffer < started]
    tasks = []
    for index in range(count):
        read = draw(st.lists(st.sampled_from(readable), unique=True)) if readable else []
        tasks.append(
            Task(
                index=index,
                name=draw(NAMES),
                cycles=draw(st.sampled_from([(1, None), (None, 7), (2**40, 3)])),
                reads=tuple(read),
                writes=(started + index,),
                scratch=draw(SMALL),
                in_place=((read[0], started + index),) if read and draw(st.booleans()) else (),
                after=tuple(draw(st.sets(st.integers(0, index - 1)))) if index else (),
                energy=draw(st.sampled_from([(), (5, None), (2**60, 0)])),
                tile=draw(tiles()),
            )
        )
    order = draw(st.permutations(OF_ONE_INFERENCE))
    order = [*draw(st.sampled_from([(), (Quantity.PERIOD,)])), *order]
    sources = draw(st.lists(st.tuples(NAMES, NAMES), max_size=2))
    return Problem(
        name=draw(NAMES), machine=MACHINE, tensors=tuple(tensors), buffers=tuple(buffers),
        slices=tuple(slices), tasks=tuple(tasks), objective=Objective(tuple(order)),
        sources=tuple(sources),
    )  # fmt: skip
