"""Products whose results do not fit, in the blocks in which their reader adds them up."""

from collections import Counter

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import BufferKind
from spmilp.solvers.schedule.orders import banded_chains
from spmilp.solvers.schedule.portfolio import (
    CHAINS_RULES,
    plan_from,
    schedules_by,
)
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.fused import FusedReductions
from tests.lowering.builders import NetworkBuilder, star_machine

ROOM = 1 << 15
"""Bytes of each of four cores: together half of one of the two wide results."""


def feed_forward(*, keeps: bool = False) -> Network:
    """Return two wide products of the same rows, their sum, and a product that reduces it.

    Parameters
    ----------
    keeps
        The sum is an output of the network, too.
    """
    builder = NetworkBuilder()
    rows = builder.input((64, 32))
    wide = builder.add(builder.matmul(rows, 1024), builder.matmul(rows, 1024))
    narrow = builder.matmul(wide, 32)
    return builder.network(*((wide, narrow) if keeps else (narrow,)))


def test_where_results_fit_nothing_is_cut() -> None:
    assert not any(FusedReductions(feed_forward(), star_machine(4, 1 << 22)).tilings())


def test_blocks_of_results_and_parts_of_the_reduction_are_the_same() -> None:
    ways = [*FusedReductions(feed_forward(), star_machine(4, ROOM)).tilings()]
    assert ways
    for tilings in ways:
        across = 4 // tilings[0].counts[0]
        assert {tilings[index].counts[1] for index in range(3)} == {across * tilings[3].parts}


def test_a_chain_moves_only_what_is_compulsory_and_its_plan_is_valid() -> None:
    network, machine = feed_forward(), star_machine(4, ROOM)
    first = first_choice(network, machine)
    chained = next(FusedReductions(network, machine).tilings())
    problem = first.lower({**first.tilings, **chained})
    assert groups_that_do_not_fit(problem) == {}
    assert len(banded_chains(problem)) == len(network.groups)

    found = next(schedules_by(problem, CHAINS_RULES))

    residencies, transfers = found.state.residencies, found.state.made_transfers()
    is_dram = [memory.kind is MemoryKind.DRAM for memory in machine.memories]
    moved = Counter[BufferKind]()
    for transfer in transfers:
        ends = (residencies[transfer[end]]["memory"] for end in ("source", "destination"))
        slice_ = problem.slices[transfer["slice"]]
        moved[problem.buffers[slice_.buffer].kind] += slice_.bytes * any(is_dram[m] for m in ends)
    tensors = Counter(dict.fromkeys(BufferKind, 0))
    for tensor in problem.tensors:
        tensors[tensor.kind] += tensor.bytes
    assert moved == tensors
    plan = plan_from(problem, found, best_bound(problem), "list")
    assert not check(problem, plan)
