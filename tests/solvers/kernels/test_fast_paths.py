"""What the list scheduler computes quickly is what the plain way of computing it gives."""

from itertools import pairwise

import numpy as np
import pytest

from spmilp.bench.generated import generated_problem
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.kernels.schedule_state import ScheduleState, Weights
from spmilp.solvers.kernels.serial.residencies import residency_in
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.kernels.serial.transfers import (
    cycles_on_idle_hardware,
    earliest_finish_core,
    end_of_predecessors,
)
from spmilp.solvers.list_scheduler.assignments import (
    _able,
    along_the_chip,
    earliest_finish,
    in_shares,
    locality,
    round_robin,
    units_of_operators,
)
from spmilp.solvers.list_scheduler.orders import layer_by_layer

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
