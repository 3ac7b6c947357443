"""Chains of groups hold for every tiling: against plans, and against the optima of all tilings."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.bounds.any_tiles import Chains
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import CoreKind, MacArray, Machine, RemoteReads
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.exact.cpsat.solver import CpSatSolver
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


@pytest.mark.full
@given(cases_on_machines())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_plan_starts_or_ends_a_group_earlier(case: Case) -> None:
    chains = Chains(case.network, case.machine)
    problem = case.problem()
    plan = find_solver("list").solve(problem, SolveOptions(time_limit=5.0)).plan
    assert chains.cycles() <= plan.claim.makespan
    starts, ends = defaultdict(list), defaultdict(list)
    groups = {group.name: group.index for group in case.network.groups}
    outputs = {group.output for group in case.network.groups}
    for placement in plan.placements:
        task = problem.tasks[placement.task]
        group = groups[task.tile.of]
        starts[group].append(placement.start)
        tile = problem.buffers[task.writes[0]].tile
        if tile is not None and tile.of in outputs:
            kind = case.machine.cores[placement.core].kind
            ends[group].append(placement.start + (task.cycles[kind] or 0))
    for group in case.network.groups:
        assert chains.starts[group.index] <= min(starts[group.index])
        assert chains.ends[group.index] <= min(ends[group.index])


def two_products(rows: int) -> Network:
    builder = NetworkBuilder()
    return builder.network(builder.matmul(builder.matmul(builder.input((rows, 3)), 2), 2))


@pytest.mark.full
@pytest.mark.parametrize(("rows", "share"), [(1, 0.85), (2, 0.65)])
def test_the_optima_of_all_tilings_agree(rows: int, share: float) -> None:
    network, machine = two_products(rows), star_machine(2, kinds=(LANES,))
    least = min(
        makespan
        for counts in product(range(1, rows + 1), (1, 2), range(1, rows + 1), (1, 2))
        for parts in product((1, 2, 3), (1, 2))
        if (makespan := best_makespan(network, machine, counts, parts)) is not None
    )
    assert share * least <= Chains(network, machine).cycles() <= least


def best_makespan(
    network: Network, machine: Machine, counts: tuple[int, ...], parts: tuple[int, ...]
) -> int | None:
    tilings = {
        0: Tiling(counts=counts[:2], parts=parts[0]),
        1: Tiling(counts=counts[2:], parts=parts[1]),
    }
    problem = lower(network, machine, tilings)
    if len(problem.tasks) > 3:
        return None
    answer = CpSatSolver().solve(problem, SolveOptions(time_limit=20.0))
    return answer.plan.claim.makespan if answer.plan and answer.status == "optimal" else None
