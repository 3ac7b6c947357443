"""Bands of fused operators, and blocks of products, where results do not fit."""

from collections import Counter
from collections.abc import Sequence

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import load_machine
from spmilp.problem.problem import BufferKind, Problem
from spmilp.solvers.schedule.orders import banded_chains
from spmilp.solvers.schedule.portfolio import CHAINS_RULES, Rule, plan_from, schedules_by
from spmilp.source import load
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.fused import FusedBands, FusedReductions
from tests.lowering.builders import NetworkBuilder, star_machine

MACHINE = star_machine(4, 1 << 15)
"""Together less than one of the large feature maps, and half of one of the two wide results."""

ROOMY = star_machine(4, 1 << 22)


def wide_then_narrow() -> Network:
    """Return two large feature maps, then small ones."""
    builder = NetworkBuilder()
    data = builder.conv(builder.input((1, 3, 64, 64)), 16)
    data = builder.conv(data, 16)
    data = builder.pool(data)
    return builder.network(builder.conv(builder.conv(data, 8, kernel=1), 8))


def feed_forward() -> Network:
    """Return two wide products of the same rows, their sum, and a product that reduces it."""
    builder = NetworkBuilder()
    rows = builder.input((64, 32))
    wide = builder.add(builder.matmul(rows, 1024), builder.matmul(rows, 1024))
    return builder.network(builder.matmul(wide, 32))


def moved(problem: Problem, rules: Sequence[Rule]) -> Counter[BufferKind]:
    """Return the bytes from and to DRAM of the first rule's schedule, whose plan is valid."""
    found = next(schedules_by(problem, rules))
    assert not check(problem, plan_from(problem, found, best_bound(problem), "list"))
    residencies, result = found.state.residencies, Counter[BufferKind]()
    is_dram = [memory.kind is MemoryKind.DRAM for memory in problem.machine.memories]
    for transfer in found.state.made_transfers():
        ends = (residencies[transfer[end]]["memory"] for end in ("source", "destination"))
        slice_ = problem.slices[transfer["slice"]]
        result[problem.buffers[slice_.buffer].kind] += slice_.bytes * any(is_dram[m] for m in ends)
    return +result


def test_where_all_results_fit_nothing_is_fused() -> None:
    assert not any(FusedBands(wide_then_narrow(), ROOMY).tilings())
    assert not any(FusedReductions(feed_forward(), ROOMY).tilings())


def test_groups_of_a_run_are_cut_along_the_same_axis() -> None:
    found = [bands for bands in FusedBands(wide_then_narrow(), MACHINE).tilings() if bands]
    assert found
    for bands in found:
        cut = [{a for a, n in enumerate(t.counts) if n > 1} for t in bands.values()]
        assert set.intersection(*cut)


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
    bytes_ = moved(first.lower({**first.tilings, **bands}), [("across_bands", "fused_bands")])
    assert bytes_[BufferKind.OUTPUT] == whole
    assert bytes_[BufferKind.INTERMEDIATE] == 0


def test_blocks_of_results_and_parts_of_the_reduction_are_the_same() -> None:
    ways = [*FusedReductions(feed_forward(), MACHINE).tilings()]
    assert ways
    for tilings in ways:
        across = 4 // tilings[0].counts[0]
        assert {tilings[index].counts[1] for index in range(3)} == {across * tilings[3].parts}


def test_a_chain_of_products_moves_only_what_is_compulsory() -> None:
    network = feed_forward()
    first = first_choice(network, MACHINE)
    chained = next(FusedReductions(network, MACHINE).tilings())
    problem = first.lower({**first.tilings, **chained})
    assert groups_that_do_not_fit(problem) == {}
    assert len(banded_chains(problem)) == len(network.groups)

    tensors = Counter[BufferKind]()
    for tensor in problem.tensors:
        tensors[tensor.kind] += tensor.bytes
    assert moved(problem, CHAINS_RULES) == tensors
