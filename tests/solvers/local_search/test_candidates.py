"""Orders, points at which bytes are set aside, hints, and what is critical."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.fit import why_it_cannot_fit
from spmilp.solvers.kernels.records import numbers
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.kernels.serial.extract import columns_of, plan_of
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.local_search.candidate import (
    Candidate,
    Evaluator,
    in_order_of,
    leads_by_share,
    steps_of,
)
from spmilp.solvers.local_search.neighbourhood_state import critical_tasks
from spmilp.solvers.local_search.problem_index import ProblemIndex, problem_index
from spmilp.solvers.local_search.solver import candidate_of
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems

WEIGHTS = Weights(dram=2.0)


def candidate(
    index: ProblemIndex, cores: list[int], leads: dict[int, int] | None = None
) -> Candidate:
    every = np.zeros(index.reads.items.size, np.int64)
    for read, lead in (leads or {}).items():
        every[read] = lead
    order = in_order_of(index, np.arange(len(cores)))
    return Candidate(order=order, cores=numbers(cores), leads=every, weights=WEIGHTS)


def test_the_least_key_comes_first_among_the_tasks_that_are_ready() -> None:
    # Two layers of three strips: the strips of the second wait for their neighbours in the first.
    index = problem_index(chain(star(2, 4096), layers=2, strips=3))

    assert in_order_of(index, numbers([2, 1, 0, 0, 0, 0])).tolist() == [2, 1, 5, 0, 3, 4]


def test_bytes_are_set_aside_so_many_tasks_of_the_same_memory_before_their_reader() -> None:
    index = problem_index(chain(star(2, 4096), layers=2, strips=3))
    read = int(index.reads.begin[5])
    tasks = [0, 1, 2, 3, 4, 5]

    def steps(lead: int) -> list[int]:
        return steps_of(index, candidate(index, [0, 1, 0, 1, 0, 1], {read: lead})).tolist()

    # Task 5 is behind 1 and 3 on core 1.
    assert steps(0) == tasks
    assert steps(1) == [0, 1, 2, 6 + read, 3, 4, 5]
    assert steps(2) == steps(9) == [0, 6 + read, 1, 2, 3, 4, 5]
    assert steps(-1) == [0, 1, 2, 6 + index.reads.items.size + read, 3, 4, 5]


def test_a_share_of_the_memory_says_how_early_bytes_are_set_aside() -> None:
    # One strip on one core: each of three layers reads 256 B of weights of its own.
    problem = chain(star(1, 4096), layers=3, strips=1)
    index = problem_index(problem)
    order, cores = numbers([0, 1, 2]), numbers([0, 0, 0])

    def leads(share: float) -> list[int]:
        found = leads_by_share(index, order, cores, share)
        return [
            int(found[index.reads.begin[task] : index.reads.begin[task + 1]].max())
            for task in range(3)
        ]

    assert leads(0.0) == [0, 0, 0]
    assert leads(1.0) == [0, 1, 2]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problem=problems(), data=st.data())
def test_whatever_is_set_aside_the_plan_is_valid(problem: Problem, data: st.DataObject) -> None:
    if why_it_cannot_fit(problem):
        return
    index = problem_index(problem)
    cores = [
        data.draw(st.sampled_from(index.able.row(task).tolist()))
        for task in range(len(problem.tasks))
    ]
    leads = {read: data.draw(st.integers(-4, 4)) for read in range(index.reads.items.size)}

    evaluated = Evaluator(problem, Runner(problem), index).evaluate(
        candidate(index, cores, leads), "test"
    )

    if evaluated is not None:
        columns = columns_of(problem, evaluated.state)
        plan = plan_of(problem, columns, best_bound(problem), "test", ())
        assert check(problem, plan) == ()
        assert plan.claim.makespan == evaluated.score[0]
        assert plan.claim.peak_spm == evaluated.score[3]


def test_bytes_that_are_set_aside_let_weights_come_while_another_layer_runs() -> None:
    problem = chain(star(1, 3200), layers=4, strips=3, weights=1024)
    index = problem_index(problem)
    evaluator = Evaluator(problem, Runner(problem), index)
    usual = candidate(index, [0] * 12)
    prefetching = replace(usual, leads=leads_by_share(index, usual.order, usual.cores, 0.4))

    without, found = evaluator.evaluate(usual, "test"), evaluator.evaluate(prefetching, "test")

    assert without is not None
    assert found is not None
    assert (without.score[0], found.score[0]) == (1228, 1112)


def test_a_run_that_is_sure_to_exceed_its_limit_is_given_up() -> None:
    problem = chain(star(2, 1000), layers=3, strips=4)
    index = problem_index(problem)
    evaluator = Evaluator(problem, Runner(problem), index)
    one = candidate(index, [0, 1] * 6)
    evaluated = evaluator.evaluate(one, "test")

    assert evaluated is not None
    again = evaluator.evaluate(one, "test", evaluated.score)
    assert again is not None
    assert again.score == evaluated.score
    assert evaluator.evaluate(one, "test", (evaluated.score[0] - 1, 0, 0, 0)) is None


def test_a_hint_gives_its_cores_and_the_order_of_its_starts() -> None:
    problem = chain(star(3, 900), layers=3, strips=5)
    plan = ListScheduler().solve(problem, SolveOptions()).plan
    assert plan is not None
    index = problem_index(problem)

    found = candidate_of(index, plan, WEIGHTS)

    by_task = {placement.task: placement for placement in plan.placements}
    assert found.cores.tolist() == [by_task[task].core for task in range(len(by_task))]
    starts = [by_task[task].start for task in found.order.tolist()]
    assert starts == sorted(starts)
    assert Evaluator(problem, Runner(problem), index).evaluate(found, "hint") is not None


@pytest.mark.parametrize("cores", [[0, 0, 0], [0, 1, 2]])
def test_in_a_chain_every_task_is_critical(cores: list[int]) -> None:
    problem = chain(star(3, 4096), layers=3, strips=1)
    index = problem_index(problem)
    evaluated = Evaluator(problem, Runner(problem), index).evaluate(candidate(index, cores), "test")

    assert evaluated is not None
    assert critical_tasks(index, evaluated.state).tolist() == [2, 1, 0]
