"""Problems and plans of any shape for the tests of files; the plans need not be valid."""

from dataclasses import replace
from math import prod
from typing import Any

from hypothesis import strategies as st

from checker.worked_example import MACHINE
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Transfer
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import (
    Buffer,
    BufferKind,
    DramTensor,
    Place,
    Problem,
    Slice,
    Task,
    Tile,
)

NAMES = st.text(max_size=8)
SMALL = st.integers(0, 9)
AMOUNTS = st.integers(0, 2**48)


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
    order = draw(st.permutations(list(Quantity)))
    sources = draw(st.lists(st.tuples(NAMES, NAMES), max_size=2))
    return Problem(
        name=draw(NAMES), machine=MACHINE, tensors=tuple(tensors), buffers=tuple(buffers),
        slices=tuple(slices), tasks=tuple(tasks), objective=Objective(tuple(order)),
        sources=tuple(sources),
    )  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any numbers that the format can hold; references often lead nowhere."""
    some = st.lists(SMALL, max_size=3).map(tuple)

    def interval() -> tuple[int, int]:
        start = draw(AMOUNTS)
        return start, start + draw(st.integers(1, 99))

    placements, residencies, moves = [], [], []
    for _ in range(draw(st.integers(0, 3))):
        start, end = interval()
        placements.append(
            Placement(
                task=draw(SMALL), core=draw(SMALL), start=start, end=end, reads=draw(some),
                writes=draw(some), scratch=draw(st.none() | SMALL),
            )
        )  # fmt: skip
    for _ in range(draw(st.integers(0, 4))):
        start, end = draw(SMALL), draw(st.integers(1, 9))
        residencies.append(
            Residency(
                index=draw(SMALL), slice=draw(st.none() | SMALL), memory=draw(SMALL),
                offset=draw(AMOUNTS), bytes=draw(st.integers(1, 99)), start=start, end=end,
                filled_by_task=draw(st.none() | SMALL), filled_by_transfer=draw(st.none() | SMALL),
            )
        )  # fmt: skip
    for _ in range(draw(st.integers(0, 4))):
        start, end = interval()
        moves.append(
            Transfer(
                index=draw(SMALL), slice=draw(SMALL), source=draw(SMALL), destinations=draw(some),
                engine=draw(SMALL), channel=draw(SMALL), start=start, end=end, route=draw(some),
            )
        )  # fmt: skip
    claim = Claim(
        makespan=draw(AMOUNTS), dram_traffic=draw(AMOUNTS), energy=draw(st.integers(0, 2**63 - 1)),
        peak_spm=draw(AMOUNTS), bound=draw(st.integers(-5, 2**63 - 1)), bound_source=draw(NAMES),
    )  # fmt: skip
    return Plan(
        placements=tuple(placements), residencies=tuple(residencies), transfers=tuple(moves),
        tensors=draw(st.lists(AMOUNTS, max_size=3).map(tuple)), claim=claim, solver=draw(NAMES),
        options=tuple(draw(st.lists(st.tuples(NAMES, NAMES), max_size=2))),
    )  # fmt: skip


def naming(plan: Plan, sha256: str) -> Plan:
    """Return the plan that names its problem."""
    return replace(plan, problem_sha256=sha256)
