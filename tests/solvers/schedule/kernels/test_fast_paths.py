"""What the list scheduler computes quickly is what the plain way of computing it gives."""

import numpy as np
import pytest

from benchmarks.generated import generated_problem
from spmilp.problem.problem import Problem
from spmilp.solvers.schedule.assignments import (
    earliest_finish,
)
from spmilp.solvers.schedule.kernels.memories import residency_in
from spmilp.solvers.schedule.kernels.records import NONE
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState, Weights
from spmilp.solvers.schedule.kernels.transfers import (
    cycles_on_idle_hardware,
    earliest_finish_core,
    end_of_predecessors,
)
from spmilp.solvers.schedule.orders import (
    by_priority,
    layer_by_layer,
)

PROBLEMS = [generated_problem(90, 4, 1), generated_problem(150, 9, 2), generated_problem(70, 12)]


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
