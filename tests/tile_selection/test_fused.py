"""Bands of fused operators where results do not fit."""

from collections import Counter
from collections.abc import Sequence

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import load_machine
from spmilp.problem.problem import BufferKind, Problem
from spmilp.solvers.schedule.portfolio import Rule, plan_from, schedules_by
from spmilp.source import load
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.fused import FusedBands
from tests.lowering.builders import NetworkBuilder, star_machine

MACHINE = star_machine(4, 1 << 15)
"""Together less than one of the large feature maps."""


def moved(problem: Problem, rules: Sequence[Rule]) -> Counter[BufferKind]:
    """Return the bytes from and to DRAM of the first rule's schedule, whose plan is valid."""
    found = next(schedules_by(problem, rules))
    assert not check(problem, plan_from(problem, found, best_bound(problem), "list"))
    columns, result = found.columns, Counter[BufferKind]()
    is_dram = [memory.kind is MemoryKind.DRAM for memory in problem.machine.memories]
    for number, moved_slice in enumerate(columns.moved.tolist(), columns.tasks):
        ends = (*columns.reads.values(number), *columns.fills.values(number))
        slice_, touches = problem.slices[moved_slice], columns.memory[[*ends]].tolist()
        result[problem.buffers[slice_.buffer].kind] += slice_.bytes * any(
            map(is_dram.__getitem__, touches)
        )
    return +result


def test_bands_are_not_cut_along_channels_where_arrays_would_stand_idle() -> None:
    target = load_machine("edge16").replace(spm="256KiB")
    network, _ = load("onnx:light_squeezenet", target)
    bands = next(FusedBands(network, target.machine).tilings())

    # A convolution and the pooling behind it, which would read nothing of other channels.
    convolution = bands[min(bands)]
    assert convolution.counts[1] == 1
    assert min(convolution.counts[2:]) > 1


def test_a_chain_of_convolutions_whose_rows_fit_moves_no_intermediate_result() -> None:
    builder = NetworkBuilder()
    data = builder.input((1, 3, 64, 64))
    for _ in range(5):
        data = builder.conv(data, 8)
    network = builder.network(data)
    whole, first = network.tensors[data].bytes, first_choice(network, MACHINE)
    assert whole >= 4 * (1 << 15)

    bands = next(FusedBands(network, MACHINE).tilings())
    bytes_ = moved(first.lower({**first.tilings, **bands}), [("round_robin", "fused_bands")])
    assert bytes_[BufferKind.OUTPUT] == whole
    assert bytes_[BufferKind.INTERMEDIATE] == 0
