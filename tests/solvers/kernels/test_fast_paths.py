"""What the list scheduler computes quickly is what the plain way of computing it gives."""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.generated import generated_problem
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.memories import residency_in
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.kernels.run import Runner
from spmilp.solvers.kernels.schedule_state import ScheduleState, Weights
from spmilp.solvers.kernels.transfers import (
    cycles_on_idle_hardware,
    earliest_finish_core,
    end_of_predecessors,
)
from spmilp.solvers.list_scheduler.assignments import (
    _able,
    along_the_chip,
    contiguous,
    earliest_finish,
    in_shares,
    locality,
    round_robin,
    units_of_operators,
)
from spmilp.solvers.list_scheduler.orders import (
    _most_ports,
    _rotation,
    _stationary_operators,
    by_priority,
    layer_by_layer,
)
from spmilp.solvers.list_scheduler.orders import round_robin as placed_in_turn

PROBLEMS = [generated_problem(90, 4, 1), generated_problem(150, 9, 2), generated_problem(70, 12)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_each_tile_goes_to_the_core_that_touched_most_of_its_bytes(problem: Problem) -> None:
    along = along_the_chip(problem)
    touched: list[set[int]] = [set() for _ in problem.slices]
    expected = np.full(len(problem.tasks), NONE)
    for units in units_of_operators(problem):
        able = _able(problem, units[0], along)
        taken = dict.fromkeys(able, 0)
        for unit, default in zip(units, in_shares(problem, units, along), strict=True):
            near = dict.fromkeys(able, 0)
            for read in (problem.slices[r] for task in unit.tasks for r in task.reads):
                for core in touched[read.index] | touched[read.buffer]:
                    near[core] += read.bytes
            free = [core for core in able if taken[core] < -(-len(units) // len(able))]
            best = max(free, key=lambda c: (near[c], c == default, -taken[c]))
            taken[best] += 1
            for task in unit.tasks:
                expected[task.index] = best
                for one in (*task.reads, *task.writes):
                    touched[one].add(best)

    np.testing.assert_array_equal(locality(problem), expected)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_pairs_lead_from_each_writer_to_its_readers_and_from_reader_to_reader(
    problem: Problem,
) -> None:
    cores = round_robin(problem)
    memory_of = [problem.machine.cores[core].memory for core in cores]
    expected = set()
    for slice_ in problem.slices:
        writer = problem.writers()[slice_.buffer]
        readers = [task.index for task in problem.tasks if slice_.index in task.reads]
        users = readers if writer is None else [writer, *readers]
        places = list(dict.fromkeys(memory_of[task] for task in users))
        expected |= {(places[0], other) for other in places[1:]} | set(pairwise(places))

    runner = Runner(problem)

    assert set(runner._pairs_between_readers(cores)) == expected


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_core_that_ends_first_is_found_as_by_asking_each_memory(problem: Problem) -> None:
    runner = Runner(problem)
    first_half, rest = np.array_split(layer_by_layer(problem), 2)
    _, state = runner.run(first_half, earliest_finish(problem), Weights())

    for task in rest[:20].tolist():
        assert earliest_finish_core(state, task) == _by_asking_each_memory(state, task)


def _by_asking_each_memory(state: ScheduleState, task: int) -> int:
    ready = end_of_predecessors(state, task)
    reads = range(state.tasks[task].reads_from, state.tasks[task].reads_to)
    ends = {}
    for core, there in enumerate(state.cores):
        loads = 0
        for what in state.reads[reads]["slice"]:
            if residency_in(state, what, there.memory) == NONE:
                parent = state.memories[there.memory].parent
                size = state.slices[what].bytes
                loads += cycles_on_idle_hardware(state, parent, there.memory, size)
        ends[core] = max(there.free, ready + loads) + state.cycles[task, there.kind]
    return min(ends, key=lambda core: (ends[core], core))


def test_half_a_schedule_is_there_to_look_at() -> None:
    problem = PROBLEMS[0]
    half: Ints = layer_by_layer(problem)[:45]

    _, state = Runner(problem).run(half, earliest_finish(problem), Weights())

    assert state.tasks["placed"].sum() == 45
    assert state.residencies["alive"].sum() > len(problem.tensors)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_tasks_stand_by_priority_as_far_as_they_may(problem: Problem) -> None:
    keys = np.random.default_rng(0).permutation(len(problem.tasks)) // 3
    left, expected = dict.fromkeys(range(len(problem.tasks))), list[int]()
    before = problem.predecessors()
    while left:
        ready = [task for task in left if not any(earlier in left for earlier in before[task])]
        expected.append(min(ready, key=lambda task: (keys[task], task)))
        del left[expected[-1]]

    assert by_priority(problem, keys).tolist() == expected


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_tiles_of_an_operator_are_placed_on_each_core_in_turn(problem: Problem) -> None:
    cores = contiguous(problem)
    # Of every seventh task the core is open.
    cores[::7] = NONE
    count = len(problem.machine.cores)
    step = _rotation(count) if _most_ports(problem.machine) > 1 else 0
    expected: list[int] = []
    for operator in _stationary_operators(problem):
        placed: dict[int, int] = {}
        rounds = []
        for task in operator:
            core = int(cores[task])
            placed[core] = placed.get(core, 0) + 1
            turn = (core + placed[core] * step) % count if core >= 0 else core
            rounds.append((placed[core], turn, task))
        expected += [task for _, _, task in sorted(rounds)]
    rank = np.empty(len(problem.tasks))
    rank[expected] = np.arange(len(expected))

    assert placed_in_turn(problem, cores).tolist() == by_priority(problem, rank).tolist()
