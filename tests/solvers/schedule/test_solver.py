"""Plans of the list scheduler: always valid, whatever the machine and the memory."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.generated import generated_problem
from spmilp.bounds.best import Bound, all_bounds
from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError
from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.pins import BufferPin, Pins
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.schedule.assignments import locality
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.schedule.kernels.tables import MOST_MEMORIES_WITH_ALL_PAIRS
from spmilp.solvers.schedule.orders import depth_first
from spmilp.solvers.schedule.portfolio import Schedules, plan_from
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.small import ProblemSketch, machine
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.tiny_problems import tiny_problem

OPTIONS = SolveOptions(seed=0)


def solve(problem: Problem):
    return ListScheduler().solve(problem, OPTIONS)


@pytest.mark.full
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problem=problems())
def test_every_plan_passes_the_checker_and_no_bound_exceeds_it(problem: Problem) -> None:
    result = solve(problem)

    if result.plan is None:
        assert result.status in (SolveStatus.INFEASIBLE, SolveStatus.UNKNOWN)
        assert result.reason
        return
    assert check(problem, result.plan) == ()
    found = {
        Quantity.MAKESPAN: result.plan.claim.makespan,
        Quantity.DRAM_TRAFFIC: result.plan.claim.dram_traffic,
        Quantity.ENERGY: result.plan.claim.energy,
        Quantity.PEAK_SPM: result.plan.claim.peak_spm,
    }
    for bound in all_bounds(problem):
        assert bound.value <= found[bound.quantity], bound


@pytest.mark.parametrize("spm", [896, 1500])
def test_a_scratchpad_that_just_holds_the_working_set_is_enough(spm: int) -> None:
    problem = chain(star(4, spm), layers=4, strips=8)

    result = solve(problem)

    assert check(problem, result.plan) == ()
    assert result.plan.claim.peak_spm <= spm


@pytest.mark.parametrize("number", [94, 242, 420])
def test_nothing_that_is_still_read_is_overwritten_and_engines_get_congruent_addresses(
    number: int,
) -> None:
    """Tiny problems with several slices of one buffer in a task, and with congruent engines."""
    problem = tiny_problem(number, most_tasks=8)
    plan = ListScheduler().solve(problem, SolveOptions()).plan

    assert plan is None or check(problem, plan) == ()


def test_a_dram_that_its_spills_do_not_fit_proves_nothing() -> None:
    problem = chain(star(2, 1100), layers=3, strips=4)
    dram = problem.machine.memories[0]
    needed = sum(-(-tensor.bytes // dram.alignment) * dram.alignment for tensor in problem.tensors)
    machine = replace(
        problem.machine, memories=(replace(dram, size=needed), *problem.machine.memories[1:])
    )
    result = ListScheduler().solve(replace(problem, machine=machine), SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert f"> {needed} B" in result.reason


def test_with_ample_memory_only_halo_rows_are_read_from_dram_twice() -> None:
    problem = chain(star(4, 64 * 1024), layers=3, strips=4)
    cheap = replace(problem, objective=Objective.of(Quantity.DRAM_TRAFFIC))

    result = solve(cheap)

    compulsory = (4 + 3 + 4) * 256
    halos_of_the_input = 6 * 64
    assert result.bound == compulsory
    assert compulsory <= result.plan.claim.dram_traffic <= compulsory + halos_of_the_input


def test_weights_kept_in_a_scratchpad_are_not_loaded() -> None:
    problem = chain(star(1, 4096), layers=1, strips=1)
    weights = next(b for b in problem.buffers if b.name == "w0")
    spm = next(m.index for m in problem.machine.memories if m.kind is MemoryKind.SPM)
    kept = replace(weights, starts_in=spm, ends_in=spm, place=None)
    buffers = tuple(kept if b.index == weights.index else b for b in problem.buffers)
    problem = replace(problem, buffers=buffers)

    result = solve(problem)

    assert check(problem, result.plan) == ()
    assert result.plan.claim.dram_traffic == 2 * 256


def test_the_last_bytes_of_a_memory_need_no_padding() -> None:
    sketch = ProblemSketch(machine(86, alignment=32))
    sketch.buffer("a", 30).buffer("b", 20).buffer("c", 5)
    sketch.task("t", 5, writes=["a", "b", "c"])

    result = solve(sketch.problem())

    assert result.plan is not None
    assert check(sketch.problem(), result.plan) == ()
    assert result.plan.claim.peak_spm <= 86


def staged(l2: int, spm: int) -> Machine:
    """Return two cores that share a scratchpad, which one engine fills from a shared memory."""
    rate, between = Fraction(4), [("dram", "l2"), ("l2", "dram"), ("l2", "spm"), ("spm", "l2")]
    return Machine(
        name="staged",
        memories=(
            Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None),
            Memory(index=1, name="l2", kind=MemoryKind.SHARED, size=l2),
            Memory(index=2, name="spm", kind=MemoryKind.SPM, size=spm),
        ),
        kinds=(CoreKind(index=0, name="core"),),
        cores=tuple(Core(index=c, name=f"core{c}", kind=0, memory=2) for c in range(2)),
        links=tuple(
            Link(index=i, source=source, target=target, rate=rate)
            for i, (source, target) in enumerate(between)
        ),
        engines=(
            Engine(index=0, name="outer", owner=1, reaches=(0,), rate=rate),
            Engine(index=1, name="inner", owner=1, reaches=(2,), rate=rate),
        ),
    )


@pytest.mark.parametrize(("spm", "l2"), [(820, 1020), (880, 1200)])
def test_bytes_that_nothing_has_filled_yet_are_no_source(spm: int, l2: int) -> None:
    # Clearing bytes for a load moves a result to the shared memory, where the load's source lay.
    problem = chain(staged(l2, spm), layers=4, strips=3, weights=128)
    schedules, plans = Schedules(problem), []
    for found in filter(None, schedules):
        # Some find no addresses in the shared memory.
        with suppress(DoesNotFitError):
            plans.append(plan_from(problem, found, Bound("zero", Quantity.MAKESPAN, 0), "list"))

    assert len(plans) > 20
    assert [check(problem, plan) for plan in plans] == [()] * len(plans)


def beside(spm: int, l2: int) -> Machine:
    """Return two cores that reach a slow DRAM, and a shared memory of ``l2`` bytes if any."""
    bare = star(2, spm)
    links = [
        replace(link, rate=Fraction(1)) if "dram" in (link.source, link.target) else link
        for link in bare.links
    ]
    shared = [Memory(index=3, name="l2", kind=MemoryKind.SHARED, size=l2)] if l2 else []
    for one in shared:
        for source, target in ((one.name, "switch"), ("switch", one.name)):
            links.append(Link(index=len(links), source=source, target=target, rate=Fraction(8)))
    return replace(bare, memories=(*bare.memories, *shared), links=tuple(links))


def lies_in(problem: Problem, plan: Plan, memory: str) -> bool:
    """Say whether a plan puts anything into a memory beside tensors."""
    index = next(one.index for one in problem.machine.memories if one.name == memory)
    return any(
        one.memory == index
        and one.slice is not None
        and problem.buffers[problem.slices[one.slice].buffer].place is None
        for one in plan.residencies
    )


def test_what_is_spilled_lies_in_a_shared_memory_that_is_nearer_than_dram() -> None:
    without, with_l2 = (chain(beside(1100, l2), layers=4, strips=5) for l2 in (0, 4096))
    slow, quick = solve(without).plan, solve(with_l2).plan

    assert slow is not None
    assert check(with_l2, quick) == ()
    assert lies_in(without, slow, "dram")
    assert lies_in(with_l2, quick, "l2")
    assert not lies_in(with_l2, quick, "dram")
    assert quick.claim.makespan < 0.8 * slow.claim.makespan


def test_what_a_small_shared_memory_has_no_room_for_goes_to_dram() -> None:
    problem = chain(beside(1100, 640), layers=4, strips=5)

    plan = solve(problem).plan

    assert check(problem, plan) == ()
    assert lies_in(problem, plan, "l2")
    assert lies_in(problem, plan, "dram")


@pytest.mark.parametrize(
    ("spm", "layers", "strips", "weights", "spilled"), [(1000, 3, 4, 64, 0), (1600, 8, 7, 256, 512)]
)
def test_values_stay_where_a_dram_with_a_limit_has_no_room_for_them(
    spm: int, layers: int, strips: int, weights: int, spilled: int
) -> None:
    unlimited = chain(star(2, spm), layers, strips, weights=weights)
    limit = sum(tensor.bytes for tensor in unlimited.tensors) + spilled
    dram, *others = unlimited.machine.memories
    machine = replace(unlimited.machine, memories=(replace(dram, size=limit), *others))
    problem = replace(unlimited, machine=machine)

    plan = solve(problem).plan

    assert check(problem, plan) == ()


def test_a_buffer_that_may_lie_in_another_shared_memory_alone_is_not_spilled_beside() -> None:
    problem = chain(beside(1100, 4096), layers=4, strips=5)
    other = Memory(index=4, name="far", kind=MemoryKind.SHARED, size=4096)
    machine = replace(problem.machine, memories=(*problem.machine.memories, other))
    inner = [b.index for b in problem.buffers if b.place is None]
    pins = Pins(buffers=tuple(BufferPin(buffer=b, memories=(1, 2, 4)) for b in inner))
    pinned = replace(problem, machine=machine, pins=pins)

    plan = solve(pinned).plan

    assert check(pinned, plan) == ()


@pytest.mark.full
def test_plans_for_many_memories_are_valid() -> None:
    problem = generated_problem(500, 100)
    assert len(problem.machine.memories) > MOST_MEMORIES_WITH_ALL_PAIRS

    result = ListScheduler(("round_robin", "layer_by_layer")).solve(problem, SolveOptions())

    assert check(problem, result.plan) == ()


SIZE = 100
CYCLES_OF_A_LOAD = 2 + 1 + SIZE // 4
ROOM = 2 * SIZE + 2 * 4
"""For two of what is large, and for what two tasks write."""


def in_one_pass(problem: Problem) -> Plan:
    plan = ListScheduler(("contiguous", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert check(problem, plan) == ()
    return plan


def test_a_load_that_dram_keeps_waiting_takes_bytes_that_are_free_by_then() -> None:
    sketch = ProblemSketch(machine(ROOM))
    for name in ("again", "once", "next"):
        sketch.buffer(name, SIZE, starts=0)
    sketch.buffer("small", 4).buffer("end", 4)
    sketch.task("first", 10, reads=["again"])
    sketch.task("second", 5, reads=["once"], writes=["small"])
    sketch.task("third", 10, reads=["next", "small"], writes=["end"])
    sketch.task("last", 10, reads=["again", "end"])

    plan = in_one_pass(sketch.problem())

    # Not those of "again", which are free when the engine is busy with "once".
    assert plan.claim.dram_traffic == 3 * SIZE


def test_no_result_leaves_whose_store_has_to_wait_for_the_engine() -> None:
    sketch = ProblemSketch(machine(ROOM))
    for name in ("once", "next"):
        sketch.buffer(name, SIZE, starts=0)
    sketch.buffer("result", SIZE).buffer("small", 4).buffer("end", 4)
    sketch.task("first", 10, writes=["result"])
    sketch.task("second", 40, reads=["once"], writes=["small"])
    sketch.task("third", 10, reads=["next", "small"], writes=["end"])
    sketch.task("last", 10, reads=["result", "end"])

    plan = in_one_pass(sketch.problem())

    assert 10 + CYCLES_OF_A_LOAD < 40, "on idle hardware it would be away by the end of the second"
    assert plan.claim.dram_traffic == 2 * SIZE


PROBLEM = chain(star(4, 1000), layers=4, strips=8)


def state_of(runner: Runner) -> ScheduleState:
    stop, state = runner.run(depth_first(PROBLEM), locality(PROBLEM), Weights())
    assert stop is Stop.DONE
    return state


def test_tables_that_begin_too_small_give_the_same_schedule() -> None:
    runner = Runner(PROBLEM)
    expected = state_of(runner)
    runner.growth = 2.0**-10
    found = state_of(runner)
    assert 2.0**-10 < runner.growth < 1
    np.testing.assert_array_equal(found.tasks, expected.tasks)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.made_residencies(), expected.made_residencies())
    np.testing.assert_array_equal(found.made_transfers(), expected.made_transfers())
