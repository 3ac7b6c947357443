"""The numbers of a plan, for solvers to state and people to look at."""

from dataclasses import replace
from itertools import product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from checker.worked_example import MACHINE, PLAN, PROBLEM, SPM0, X0, with_task
from spmilp.machine.machine import MemoryKind
from spmilp.plan.frames import residency_frame, transfer_frame
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.problem.loads import bytes_read_of_buffers
from spmilp.problem.problem import Place, Problem, Slice, Task
from spmilp.units import Box, SliceIdx


def test_compulsory_traffic_is_what_is_read_and_what_must_be_stored() -> None:
    """All of x0 (64 B), the top half of x1 (32 B), y0 and y1 (32 B each); not the spill of c."""
    assert compulsory_dram_traffic(PROBLEM) == 64 + 32 + 32 + 32
    assert PLAN.claim.dram_traffic == 160 + 2 * 64


def test_compulsory_traffic_counts_slices_that_overlap_or_their_buffer() -> None:
    """Rows [0, 3) and columns [0, 8) of x0, which is 4 x 16: 48 + 32 bytes, or 64 at once."""
    rows = replace(PROBLEM.slices[8], index=10, extent=(3, 16), bytes=48)
    read = with_task(2, more=(rows,), reads=(4, 10))
    read = replace(read, tasks=tuple(_without(task, X0) for task in read.tasks))
    assert compulsory_dram_traffic(read) == 64 + 32 + 32 + 32
    memories = tuple(
        memory if memory.kind is MemoryKind.DRAM else replace(memory, size=63, reserved=())
        for memory in MACHINE.memories
    )
    small = replace(read, machine=replace(MACHINE, memories=memories))
    assert compulsory_dram_traffic(small) == 80 + 32 + 32 + 32
    engines = tuple(replace(engine, longest=63) for engine in MACHINE.engines)
    short = replace(read, machine=replace(MACHINE, engines=engines))
    assert compulsory_dram_traffic(short) == 80 + 32 + 32 + 32


def _without(task: Task, slice_: SliceIdx) -> Task:
    reads = tuple(read for read in task.reads if read != slice_)
    return replace(task, reads=reads)


def test_what_starts_in_dram_and_must_end_elsewhere_leaves_as_a_whole() -> None:
    buffers = list(PROBLEM.buffers)
    buffers[1] = replace(buffers[1], ends_in=SPM0)
    assert compulsory_dram_traffic(replace(PROBLEM, buffers=tuple(buffers))) == 160 + 32


INTERVALS = st.tuples(st.integers(0, 5), st.integers(1, 4)).map(lambda i: (i[0], i[0] + i[1]))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 3).flatmap(lambda n: st.sets(st.tuples(*[INTERVALS] * n), max_size=6)))
def test_bytes_read_through_overlapping_slices_are_counted_exactly(boxes: set[Box]) -> None:
    elements = {
        point for box in boxes for point in product(*(range(first, last) for first, last in box))
    }
    assert bytes_read_of_buffers(_reading(boxes)) == (2 * len(elements),)


def _reading(boxes: set[Box]) -> Problem:
    """Return a problem whose one task reads these boxes of a buffer of 2 B elements in DRAM."""
    shape = (9,) * len(next(iter(boxes), ()))
    tensor = replace(PROBLEM.tensors[0], shape=shape, item=2)
    buffer = replace(PROBLEM.buffers[0], shape=shape, item=2, place=Place(0, (0,) * len(shape)))
    slices = [Slice(index=0, buffer=0, start=(0,) * len(shape), extent=shape, bytes=buffer.bytes)]
    for box in sorted(boxes):
        start, extent = tuple(a for a, _ in box), tuple(b - a for a, b in box)
        size = 2 * prod(extent)
        slices.append(Slice(index=len(slices), buffer=0, start=start, extent=extent, bytes=size))
    task = Task(index=0, name="reader", cycles=(1, 1), reads=tuple(range(1, len(slices))))
    return replace(
        PROBLEM, tensors=(tensor,), buffers=(buffer,), slices=tuple(slices), tasks=(task,)
    )


def test_the_frame_of_residencies_marks_scratch_and_fillers() -> None:
    frame = residency_frame(PROBLEM, PLAN)
    assert frame.loc[9, "kind"] == "scratch"
    assert frame["slice"].isna().sum() == 1
    assert frame.loc[10, "filled_by"] == "task 1"
    assert frame.loc[22, "filled_by"] == "transfer 12"
    assert frame.loc[18, ["name", "memory_name", "offset"]].tolist() == ["y0", "dram", 128]


def test_the_frame_of_transfers_adds_up_to_the_traffic() -> None:
    frame = transfer_frame(PROBLEM, PLAN)
    assert frame.loc[1, ["destination", "destinations", "hops"]].tolist() == ["spm0+spm1", 2, 3]
    assert frame.loc[[0, 4, 12], "direction"].tolist() == ["load", "store", "move"]
    touches_dram = (frame["source"] == "dram") | (frame["destination"] == "dram")
    assert frame.loc[touches_dram, "bytes"].sum() == PLAN.claim.dram_traffic
