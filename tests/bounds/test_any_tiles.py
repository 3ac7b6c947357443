"""Bounds of the peak and of DRAM traffic for any tiles, against plans of random tilings."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.bounds.any_tiles import peak_for_any_tiles, traffic_for_any_tiles
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import CoreKind, MacArray, RemoteReads
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from tests.lowering.builders import NetworkBuilder, star_machine
from tests.lowering.test_lower import Case, cases

WITH_AN_ARRAY = CoreKind(
    index=0,
    name="array",
    arrays=(MacArray(dtype="float32", unroll=(("K", 4), ("C", 2))),),
    lanes=(("float32", 4),),
    launch=20,
)
LANES = CoreKind(index=0, name="lanes", lanes=(("float32", 1),), launch=5)


@st.composite
def cases_on_machines(draw: st.DrawFn) -> Case:
    """Tilings on machines with latency, remote reads, shared scratchpads, and two kinds of core."""
    case = draw(cases())
    machine = case.machine
    if draw(st.booleans()):
        links = tuple(replace(link, latency=20) for link in machine.links)
        engines = tuple(replace(engine, pipelined=True) for engine in machine.engines)
        machine = replace(machine, links=links, engines=engines)
    if draw(st.booleans()):
        machine = replace(machine, kinds=(WITH_AN_ARRAY,))
    if draw(st.booleans()):
        cores = (replace(core, memory=1 + core.index // 2) for core in machine.cores)
        machine = replace(machine, cores=tuple(cores))
    elif draw(st.booleans()):
        machine = replace(machine, remote=RemoteReads(cycles_per_byte_hop=Fraction(1, 8)))
    if draw(st.booleans()):
        kinds = (replace(machine.kinds[0], launch=40), replace(LANES, index=1))
        cores = (replace(core, kind=core.index % 2) for core in machine.cores)
        machine = replace(machine, kinds=kinds, cores=tuple(cores))
    return replace(case, machine=machine)


def planned(problem: Problem) -> Plan:
    plan = find_solver("list").solve(problem, SolveOptions(time_limit=5.0)).plan
    assert plan is not None
    return plan


@pytest.mark.full
@given(cases_on_machines())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_plan_of_any_tiling_has_less(case: Case) -> None:
    peak = peak_for_any_tiles(case.network, case.machine)
    traffic = traffic_for_any_tiles(case.network)
    plan = planned(case.problem())
    assert peak <= plan.claim.peak_spm
    assert traffic <= plan.claim.dram_traffic


@pytest.mark.full
def test_smallest_tiles_of_an_addition_reach_the_bounds() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.add(builder.input((4,)), builder.input((4,))))
    # So small that nothing is read as a whole.
    machine = star_machine(1, 32)
    # One element of each operand; the result is written over one of them.
    assert peak_for_any_tiles(network, machine) == 8
    assert traffic_for_any_tiles(network) == 48
    objective = Objective.of(Quantity.PEAK_SPM)
    problem = lower(network, machine, {0: Tiling(counts=(4,))}, objective=objective)
    plan = find_solver("cpsat").solve(problem, SolveOptions(time_limit=20.0)).plan
    assert (plan.claim.peak_spm, plan.claim.dram_traffic) == (8, 48)


@pytest.mark.parametrize(("alignment", "peak"), [(4, 12), (64, 132)])
def test_a_split_product_needs_an_element_of_each_operand_and_a_partial_sum(
    alignment: int, peak: int
) -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.input((2, 8)), 4))
    machine = star_machine(1, alignment=alignment)
    assert peak_for_any_tiles(network, machine) == peak
    # Row and column of one element of the output are 8 elements each, unless they are split.
    problem = lower(network, machine, {0: Tiling(counts=(2, 4), parts=8)})
    plan = planned(problem)
    assert plan.claim.peak_spm >= peak
