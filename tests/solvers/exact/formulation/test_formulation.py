"""What the exact solvers share: from a problem to candidates, and from decisions to a plan."""

from dataclasses import replace

import pytest

from benchmarks.exact.cosma.setting import compulsory_bytes, problem_of
from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.machine.machine import ByteRange
from spmilp.policies.cosma import Network, Operator
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import BufferPin, Pins
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.cpsat.solver import CpSatOptions, CpSatSearch
from spmilp.solvers.exact.formulation.addresses import Addresses, ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.exact.formulation.extraction import Decisions, Fill, TaskRun, TimedPlan, extract
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.tiny_problems import tiny_problem

DRAM, SPM = 0, 1
INPUT, OUTPUT = 0, 1

COPY = Network(
    name="one task",
    sizes=(16, 24),
    operators=(Operator(name="a", reads=(INPUT,), writes=OUTPUT),),
    outputs=frozenset({OUTPUT}),
)


def decided(problem: Problem) -> Decisions:
    """Load the input, run the task, store the output."""
    tables = ProblemTables(problem)
    (load,) = tables.transfers.out_of(INPUT, INPUT, DRAM, SPM)
    (store,) = tables.transfers.out_of(OUTPUT, OUTPUT, SPM, DRAM)
    begins, loaded = CandidateResidency(INPUT, DRAM, 0), CandidateResidency(INPUT, SPM, 0)
    written, stored = CandidateResidency(OUTPUT, SPM, 0), CandidateResidency(OUTPUT, DRAM, 0)
    end = load.cycles + tables.cycles_on(0, 0)
    fills = {
        begins: Fill(start=0),
        loaded: Fill(start=0, source=begins, engine=load.engine, root=loaded),
        written: Fill(start=load.cycles),
        stored: Fill(start=end, source=written, engine=store.engine, root=stored),
    }
    return Decisions(
        runs=(TaskRun(pool=0, start=load.cycles, end=end),),
        fills=fills,
        served={(0, 0): loaded},
        outputs=(stored,),
        lasting=frozenset({begins}),
    )


def timed(problem: Problem) -> TimedPlan:
    return extract(ProblemTables(problem), decided(problem))


def test_a_slice_has_candidates_where_a_chain_of_transfers_leads_to_a_use() -> None:
    tables = ProblemTables(problem_of(COPY, 40))
    memories = CandidateMemories(tables)

    assert memories.of(INPUT) == (DRAM, SPM)
    assert memories.of(OUTPUT) == (DRAM, SPM)
    # Nothing that does not fit a memory can be of use there, and a result must fit.
    too_small = ProblemTables(problem_of(COPY, 15))
    assert too_small.pools_of(0) == ()
    assert CandidateMemories(too_small).of(INPUT) == (DRAM,)


def test_blocks_of_a_memory_leave_reserved_ranges_and_tensors_out() -> None:
    problem = problem_of(COPY, 40)
    dram, spm = problem.machine.memories
    spm = replace(spm, alignment=8, reserved=(ByteRange(start=10, end=16),))
    tables = ProblemTables(
        replace(problem, machine=replace(problem.machine, memories=(replace(dram, size=64), spm)))
    )

    assert tables.capacity == (64 - 16 - 24, 2 + 3)
    assert tables.blocks_of(OUTPUT, SPM) == 3


def test_decisions_become_a_plan_that_the_checker_accepts() -> None:
    problem = problem_of(COPY, 40)
    tables, found = ProblemTables(problem), timed(problem)
    addresses = find_addresses(tables, found, low=False)

    assert isinstance(addresses, Addresses)
    plan = addresses.plan(tables, found, Bound("none", Quantity.DRAM_TRAFFIC, 0), "test")
    assert check(problem, plan) == ()
    assert plan.claim.dram_traffic == compulsory_bytes(COPY)
    assert tables.pools_of_plan(plan) == (0,)


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_plan_gives_up_sources_once_all_is_sent_and_channels_once_they_are_free(
    pipelined: bool,
) -> None:
    problem = problem_of(COPY, 40)
    machine = problem.machine
    links = tuple(replace(link, latency=5) for link in machine.links)
    engines = tuple(replace(e, setup=2, channels=2, pipelined=pipelined) for e in machine.engines)
    problem = replace(problem, machine=replace(machine, links=links, engines=engines))
    plan, made = timed(problem), decided(problem)
    load, store = plan.transfers
    (written,) = (one for one in plan.residencies if (one.slice, one.memory) == (OUTPUT, SPM))
    # The same, but the store begins when the load has sent all.
    early = {k: replace(one, start=min(one.start, load.sent)) for k, one in made.fills.items()}
    both = extract(ProblemTables(problem), replace(made, fills=early)).transfers

    assert load.end - load.sent == 5 == store.end - store.sent
    assert (written.start, written.end) == (load.end, store.sent)
    assert [move.channel for move in both] == [0, 0 if pipelined else 1]


def test_residencies_without_addresses_are_named() -> None:
    problem = problem_of(COPY, 39)
    found = find_addresses(ProblemTables(problem), timed(problem), low=False)

    assert isinstance(found, ConflictSet)
    assert found.memory == SPM
    assert {item[0] for item in found.items if not isinstance(item, int)} == {INPUT, OUTPUT}


def test_what_is_pinned_to_an_address_lies_there() -> None:
    problem = problem_of(COPY, 40)
    pin = BufferPin(buffer=INPUT, memories=(SPM,), address=24)
    pinned = replace(problem, pins=Pins(buffers=(pin,)))
    tables, found = ProblemTables(pinned), timed(pinned)

    for low in (False, True):
        addresses = find_addresses(tables, found, low=low)
        assert isinstance(addresses, Addresses)
        assert [one.offset for one in addresses.residencies if one.memory == SPM] == [24, 0]


def test_infeasible_comes_with_the_memory_and_the_bytes_short() -> None:
    problem = tiny_problem(1)
    start = ListScheduler().solve(problem, SolveOptions())
    search = CpSatSearch(SearchContext(problem, SolveOptions()), CpSatOptions(), start)

    search.conclude_infeasible()

    expected = "no plan exists: spm0 is 8 B short for all operands and results"
    assert search.infeasible.startswith(expected)
