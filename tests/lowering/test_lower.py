"""Properties of every lowered problem, over random small networks, tilings and machines."""

from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import intersect, volume
from spmilp.frontend.regions import splittable_axes
from spmilp.lowering.groups import Computation, reduction_length
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Core, CoreKind, MacArray, Machine, Memory, MemoryKind
from spmilp.problem.problem import BufferKind, Problem, Task
from spmilp.problem.strides import layout_at_place, layout_in_slice, packed_layout, strided_copy
from spmilp.units import Box, SliceIdx
from tests.frontend.running import macs_of
from tests.lowering.builders import NetworkBuilder, star_machine

EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)

COUNTING = CoreKind(
    index=0,
    name="core",
    arrays=(MacArray(dtype="float32", unroll=()),),
    lanes=(("float32", 4),),
    mac_energy=(("float32", 1),),
)


@dataclass(frozen=True)
class Case:
    network: Network
    machine: Machine
    tilings: dict[int, Tiling]

    def problem(self) -> Problem:
        return lower(self.network, self.machine, self.tilings)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    builder = NetworkBuilder()
    if draw(st.booleans()):
        data = builder.input((draw(st.integers(1, 2)), draw(st.integers(1, 5)), 12, 11))
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(["conv", "residual", "depthwise", "pool", "relu"]))
            channels = builder.tensors[data].shape[1]
            if kind == "pool" and min(builder.tensors[data].shape[2:]) > 3:
                data = builder.pool(data)
            elif kind == "relu":
                data = builder.relu(data)
            elif kind == "depthwise":
                data = builder.conv(data, channels, group=channels)
            elif kind == "residual":
                data = builder.conv(data, channels, residual=data)
            else:
                kernel = draw(st.sampled_from([1, 3]))
                stride = draw(st.integers(1, 2))
                data = builder.conv(data, draw(st.integers(1, 9)), kernel, stride)
    else:
        data = builder.input((draw(st.integers(1, 3)), draw(st.integers(1, 9)), 10))
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(["matmul", "add", "views"]))
            if kind == "add":
                data = builder.add(data, data)
            elif kind == "views":
                data = builder.matmul_under_views(data, draw(st.integers(1, 40)))
            else:
                data = builder.matmul(data, draw(st.integers(1, 40)))
    return builder.network(data)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    network = draw(networks())
    tilings = {}
    for group in network.groups:
        shape = network.tensors[group.output].shape
        counts = tuple(
            draw(st.integers(1, min(length, 4))) if splits else 1
            for length, splits in zip(shape, splittable_axes(network, group), strict=True)
        )
        parts = draw(st.integers(1, min(3, reduction_length(network, group))))
        tilings[group.index] = Tiling(counts=counts, parts=parts)
    machine = star_machine(
        4,
        longest=draw(st.sampled_from([None, 64, 256])),
        dimensions=draw(st.sampled_from([None, 1, 2, 3])),
        kinds=(COUNTING,),
    )
    return Case(network, machine, tilings)


@pytest.mark.full
@given(cases())
@EXAMPLES
def test_a_lowered_problem_is_the_network_in_pieces_that_can_be_moved(case: Case) -> None:
    problem = case.problem()
    buffers_and_tiles_partition_every_group(case, problem)
    slices_cover_exactly_what_tasks_read(case, problem)
    every_slice_can_be_moved_by_one_transfer(case, problem)
    bytes_in_place_are_of_equal_boxes_and_orders(problem)
    partial_sums_are_read_by_the_next_part_alone(problem)
    assert sum(task.energy[0] or 0 for task in problem.tasks) == macs_of(case.network)


def buffers_and_tiles_partition_every_group(case: Case, problem: Problem) -> None:
    boxes, parts = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for buffer in problem.buffers:
        assert buffer.tile is not None
        if buffer.kind in (BufferKind.INTERMEDIATE, BufferKind.OUTPUT):
            boxes[buffer.tile.of].append(buffer.tile.box)
    for task in problem.tasks:
        assert task.tile is not None
        parts[task.tile.of][task.tile.box].append(task.tile.reduction)
    for group in case.network.groups:
        shape = case.network.tensors[group.output].shape
        whole = tuple((0, length) for length in shape)
        partition(boxes[group.output], whole)
        partition(list(parts[group.name]), whole)
        length = reduction_length(case.network, group)
        for reductions in parts[group.name].values():
            if reductions != [None]:
                assert [start for start, _ in reductions] == [0, *(b for _, b in reductions[:-1])]
                assert reductions[-1][1] == length


def slices_cover_exactly_what_tasks_read(case: Case, problem: Problem) -> None:
    groups = {group.name: group for group in case.network.groups}
    for task in problem.tasks:
        assert task.tile is not None
        group = groups[task.tile.of]
        length = reduction_length(case.network, group)
        computation = Computation(case.network, group, length)
        needed = computation.reads(task.tile.box, task.tile.reduction or (0, length))
        pieces = defaultdict(list)
        for read in task.reads:
            name, box = model_box(problem, read)
            if problem.buffers[problem.slices[read].buffer].kind is not BufferKind.PARTIAL:
                pieces[name].append(box)
        assert set(pieces) == set(needed)
        for name, box in needed.items():
            is_small = case.network.tensors[name].bytes <= 2048
            partition(pieces[name], box, may_be_larger=is_small)


def every_slice_can_be_moved_by_one_transfer(case: Case, problem: Problem) -> None:
    longest = case.machine.engines[0].longest
    dimensions = case.machine.engines[0].dimensions
    for slice_ in problem.slices:
        parent = problem.buffers[slice_.buffer]
        around = layout_in_slice(problem, slice_.index, slice_.buffer)
        if parent.place is not None:
            around = layout_at_place(problem, slice_.index)
        packed = packed_layout(problem, slice_.index)
        copy = strided_copy(slice_.extent, parent.item, around, packed)
        assert dimensions is None or copy.dimensions <= dimensions
        assert longest is None or slice_.bytes <= longest


def bytes_in_place_are_of_equal_boxes_and_orders(problem: Problem) -> None:
    for task in problem.tasks:
        for read, written in task.in_place:
            source, target = problem.buffers[read], problem.buffers[written]
            assert source.tile is not None
            assert target.tile is not None
            assert (source.shape, source.item) == (target.shape, target.item)
            assert (source.tile.box, source.tile.axes) == (target.tile.box, target.tile.axes)


def partial_sums_are_read_by_the_next_part_alone(problem: Problem) -> None:
    readers: dict[int, list[Task]] = defaultdict(list)
    for task in problem.tasks:
        for read in task.reads:
            readers[problem.slices[read].buffer].append(task)
    for buffer in problem.buffers:
        if buffer.kind is BufferKind.PARTIAL:
            (reader,) = readers[buffer.index]
            assert [read for read, _ in reader.in_place].count(buffer.index) <= 1
            assert buffer.tile is not None
            assert reader.tile is not None
            assert reader.tile.reduction is not None
            assert buffer.tile.reduction == (0, reader.tile.reduction[0])


def partition(boxes: list[Box], box: Box, *, may_be_larger: bool = False) -> None:
    """Boxes are disjoint and together are ``box``, or contain it where they may be larger."""
    shared = [intersect(box, piece) for piece in boxes]
    assert sum(volume(piece) for piece in shared if piece is not None) == volume(box)
    for i, piece in enumerate(boxes):
        assert may_be_larger or shared[i] == piece
        assert all(intersect(piece, other) is None for other in boxes[:i])


def test_halos_are_slices_of_the_neighbours_buffers() -> None:
    builder = NetworkBuilder()
    first = builder.conv(builder.input((1, 64, 16, 16)), 8)
    network = builder.network(builder.conv(first, 8))
    strips = Tiling(counts=(1, 1, 4, 1))
    problem = lower(network, star_machine(), {0: strips, 1: strips})
    second = [t for t in problem.tasks if t.tile and t.tile.of == network.groups[1].name][1]
    boxes = [model_box(problem, read) for read in second.reads]
    rows = [box[2] for name, box in boxes if name == first]
    assert rows == [(3, 4), (4, 8), (8, 9)]
    first_strips = [t for t in problem.tasks if t.tile and t.tile.of == network.groups[0].name]
    inputs = [model_box(problem, read)[1][2] for read in first_strips[1].reads[:3]]
    assert inputs == [(3, 4), (4, 8), (8, 9)]


def test_a_residual_may_be_overwritten_and_the_convolutions_data_may_not() -> None:
    builder = NetworkBuilder()
    start = builder.conv(builder.input((1, 4, 8, 8)), 4)
    middle = builder.conv(start, 4)
    network = builder.network(builder.relu(builder.conv(middle, 4, residual=start)))
    whole = Tiling(counts=(1, 1, 1, 1))
    problem = lower(network, star_machine(), dict.fromkeys(range(4), whole))
    pairs = [
        [problem.buffers[problem.slices[read].buffer].name for read, _ in task.in_place]
        for task in problem.tasks
    ]
    assert pairs == [[], [], [start], [network.groups[2].output]]


def test_a_group_that_no_core_can_run_is_named() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.relu(builder.input((1, 4))))
    kind = CoreKind(index=0, name="mac", operators=frozenset({"Conv"}), lanes=(("float32", 1),))
    with pytest.raises(SpmilpError, match=r"relu.*none of the machine's kinds of core"):
        lower(network, star_machine(kinds=[kind]), {0: Tiling(counts=(1, 1))})


def test_a_machine_without_dram_is_refused() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.relu(builder.input((1, 4))))
    memory = Memory(index=0, name="spm", kind=MemoryKind.SPM, size=1 << 16)
    core = Core(index=0, name="core", kind=0, memory=0)
    bare = Machine(name="bare", memories=(memory,), kinds=(COUNTING,), cores=(core,))
    with pytest.raises(SpmilpError, match="has no DRAM"):
        lower(network, bare, {0: Tiling(counts=(1, 1))})


def model_box(problem: Problem, read: SliceIdx) -> tuple[str, Box]:
    """Return what a slice holds, in the model's order of axes."""
    slice_ = problem.slices[read]
    tile = problem.buffers[slice_.buffer].tile
    assert tile is not None
    order = tile.axes or tuple(range(len(tile.box)))
    box = list(tile.box)
    for start, extent, axis in zip(slice_.start, slice_.extent, order, strict=True):
        first = tile.box[axis][0] + start
        box[axis] = (first, first + extent)
    return tile.of, tuple(box)


def test_a_reduction_is_split_under_views_that_add_axes_of_length_1_alone() -> None:
    builder = NetworkBuilder()
    data = builder.matmul_under_views(builder.input((2, 3, 10)), 6)
    rows = builder.operator("Reshape", [data], shape=(6, 6))
    product = builder.operator("MatMul", [rows.output, builder.constant((6, 4))])
    merged = builder.operator("Reshape", [product.output], shape=(2, 3, 4))
    builder.group(rows, product, merged, anchor=1)
    network = builder.network(merged.output)
    lengths = [reduction_length(network, group) for group in network.groups]
    assert lengths == [10, 1]
