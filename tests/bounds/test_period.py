"""Bounds on the period exceed no least period, which brute force proves, nor that of any stream."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, product
from random import Random

import pytest

from spmilp.bounds.best import best_bound
from spmilp.bounds.period import period_bound, proofs_of_period
from spmilp.errors import SpmilpError
from spmilp.machine.read import load_machine
from spmilp.problem.problem import BufferKind, Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.modulo.stream import stream_of
from tests.checker.mutations.subjects import planned, small_network, tightened
from tests.checker.states import with_states
from tests.oracle.periods import least_period
from tests.oracle.small import DRAM, ProblemSketch, machine
from tests.oracle.solver import solver_named
from tests.solvers.tiny_problems import tiny_problem

AMPLE = 10_000


def with_weights(problem: Problem, *names: str) -> Problem:
    """Return a problem in which some buffers are weights."""
    buffers = (
        replace(one, kind=BufferKind.WEIGHT) if one.name in names else one
        for one in problem.buffers
    )
    return replace(problem, buffers=tuple(buffers))


def values(problem: Problem) -> dict[str, int]:
    """Return the bounds on the period by name."""
    return {proof.name: proof.value() for proof in proofs_of_period(problem)}


def random_problem(number: int) -> Problem:
    """Return one to three tasks on one or two cores with ample room."""
    random = Random(number)
    kinds = random.choice([1, 2])
    sketch = ProblemSketch(
        machine(
            *[AMPLE] * random.choice([1, 2]), rate=random.choice([2, 4, 6]), kinds=kinds,
            channels=random.choice([1, 1, 2]), pipelined=random.random() < 0.5, between=False,
        )
    )  # fmt: skip
    kinds = min(kinds, len(sketch.machine.cores))
    sketch.machine = replace(sketch.machine, kinds=sketch.machine.kinds[:kinds])
    names = [f"x{n}" for n in range(random.choice([1, 2]))]
    for name in names:
        sketch.buffer(name, random.choice([4, 8, 11, 16]), starts=DRAM)
    tasks = random.choice([1, 2, 2, 3])
    for n in range(tasks):
        last = n == tasks - 1 or random.random() < 0.3
        sketch.buffer(f"y{n}", random.choice([4, 8]), ends=DRAM if last else None)
        read = random.choice(names)
        part = (read, 4) if read[0] == "x" and random.random() < 0.3 else read
        cycles = [random.randint(1, 15) for _ in range(kinds)]
        sketch.task(f"t{n}", *cycles, reads=[part], writes=[f"y{n}"])
        names.append(f"y{n}")
    return with_weights(sketch.problem(), *(["x0"] if random.random() < 0.4 else []))


def problems_with_states() -> Iterator[Problem]:
    """Yield random problems of which some inputs are states: outputs of tasks are left in them."""
    for problem in map(random_problem, count()):
        read = {problem.slices[one].buffer for task in problem.tasks for one in task.reads}
        states = dict[str, str]()
        for one, other in product(problem.buffers, reversed(problem.buffers)):
            is_read = one.starts_in is not None and not one.is_constant and one.index in read
            fits = is_read and other.ends_in is not None and one.shape == other.shape
            if fits and one.name not in states and other.name not in states.values():
                states[one.name] = other.name
        if states:
            yield with_states(problem, **states)


def test_no_bound_exceeds_the_least_period() -> None:
    met = 0
    for number in range(60):
        problem = random_problem(number)
        least = least_period(problem)
        bound = period_bound(problem).value
        assert bound <= least, number
        met += bound == least
        plan = solver_named("list").solve(problem, SolveOptions()).plan
        assert plan is not None
        stream = stream_of(problem, plan).stream
        assert stream is not None
        assert least <= stream.period, number
    assert met > 30


@pytest.mark.full
@pytest.mark.parametrize("most_tasks", [3, 7])
def test_no_bound_exceeds_the_period_of_a_stream(most_tasks: int) -> None:
    compared = 0
    for number in range(300):
        problem = tiny_problem(number, most_tasks=most_tasks)
        weights = [one.name for one in problem.buffers if one.starts_in is not None][number % 3 :]
        problem = with_weights(problem, *weights)
        plan = solver_named("list").solve(problem, SolveOptions()).plan
        if plan is None:
            continue
        try:
            found = stream_of(problem, plan)
        except SpmilpError:
            continue
        assert found.stream is not None
        assert period_bound(problem).value <= found.stream.period, number
        compared += 1
    assert compared > 90


@pytest.mark.parametrize("name", ["cell_be", "gap9", "mesh4x4", "stream_quad", "xdna1"])
def test_bounds_hold_on_machines_of_many_shapes(name: str) -> None:
    target = load_machine(name).machine
    for problem in map(small_network, (target, tightened(target))):
        found = stream_of(problem, planned(problem, "list"))
        assert found.stream is not None
        assert 1 < best_bound(problem, "period").value <= found.stream.period
        assert best_bound(problem, "period") == period_bound(problem)


def two_layers(size: int, *weights: str) -> Problem:
    """Return two tasks on one core with 32 bytes for each of them, an input and an output of 4.

    The scratchpad has ``size`` bytes; 4 bytes move in a cycle.
    """
    sketch = ProblemSketch(machine(size)).buffer("v", 32, starts=DRAM).buffer("w", 32, starts=DRAM)
    sketch.buffer("x", 4, starts=DRAM).buffer("y", 4).buffer("z", 4, ends=DRAM)
    sketch.task("a", 2, reads=["v", "x"], writes=["y"]).task("b", 1, reads=["w", "y"], writes=["z"])
    return with_weights(sketch.problem(), *weights)


def test_constants_cross_unless_they_have_room() -> None:
    # A channel is held by set-ups of 2, the bytes, and latencies of 1: 11 + 11 + 4 + 4.
    assert values(two_layers(AMPLE))["traffic"] == 30
    assert values(two_layers(AMPLE, "v"))["traffic"] == 19
    assert values(two_layers(AMPLE, "v", "w"))["traffic"] == 8
    # In 22 cycles there are 48 * 22 byte-cycles. Those that pass take 32 * (11 + 2), 32 * (11 + 1),
    # and 44 for the rest. The 212 that are left hold 212 / 288 of a weight for ever, which saves so
    # much of its 11 cycles: 21.9 are left. In 21 cycles 164 are left, and 22.95 are too many.
    assert values(two_layers(48, "v", "w"))["traffic"] == 22


def test_tasks_that_share_a_core_add_up() -> None:
    sketch = ProblemSketch(machine(AMPLE, AMPLE))
    for n, cycles in enumerate((5, 5, 4)):
        sketch.buffer(f"y{n}", 4).task(f"t{n}", cycles, writes=[f"y{n}"])
    assert values(sketch.problem())["work"] == 9


def test_work_is_shared_out_by_how_fast_kinds_are() -> None:
    sketch = ProblemSketch(machine(AMPLE, AMPLE, kinds=2))
    for n in range(30):
        sketch.buffer(f"y{n}", 4).task(f"t{n}", 10, 20, writes=[f"y{n}"])
    # 20 on the fast core and 10 on the slow one, where work alone says 30 * 10 / 2.
    assert values(sketch.problem()) == {"work": 150, "shares of work": 200, "traffic": 1}
