"""Offset allocation as problems."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.problem.convert.lifetimes import Lifetime, lifetimes_of_problem, problem_of_lifetimes
from spmilp.problem.problem import Problem, Task
from spmilp.problem.read import read_problem
from spmilp.problem.write import write_problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.bruteforce.solver import BruteForce
from tests.solvers.chains import chain, star


def lives(*given: tuple[int, int, int]) -> tuple[Lifetime, ...]:
    return tuple(
        Lifetime(name=f"x{n}", start=start, end=end, bytes=size)
        for n, (start, end, size) in enumerate(given)
    )


# x0 and x2 never meet; x1 meets both: 8 + 4 bytes are needed, and enough.
THREE = lives((0, 4, 8), (2, 6, 4), (4, 9, 8))


def test_tasks_last_from_instant_to_instant_and_buffers_exactly_their_lives() -> None:
    problem = problem_of_lifetimes("three", THREE)

    assert [task.cycles for task in problem.tasks] == [(2,), (2,), (2,), (3,)]
    assert [task.writes for task in problem.tasks] == [(0,), (1,), (2,), ()]
    assert [task.reads for task in problem.tasks] == [(), (0,), (1,), (2,)]
    assert lifetimes_of_problem(problem) == THREE


def test_the_least_peak_is_the_least_height_of_a_packing() -> None:
    result = BruteForce().solve(problem_of_lifetimes("three", THREE), SolveOptions())

    assert result.status is SolveStatus.OPTIMAL
    assert result.plan is not None
    assert result.plan.claim.peak_spm == 12
    assert result.plan.claim.makespan == 9
    assert check(problem_of_lifetimes("three", THREE), result.plan) == ()


def test_a_capacity_of_one_byte_less_has_no_plan() -> None:
    enough = BruteForce().solve(problem_of_lifetimes("three", THREE, capacity=12), SolveOptions())
    short = BruteForce().solve(problem_of_lifetimes("three", THREE, capacity=11), SolveOptions())

    assert enough.status is SolveStatus.OPTIMAL
    assert short.status is SolveStatus.INFEASIBLE


def test_alignment_rounds_what_lies_below_another_up() -> None:
    # The 5 bytes above the 6, from 8 on, end at 13; the other way round 14 bytes are needed.
    problem = problem_of_lifetimes("two", lives((0, 2, 6), (0, 2, 5)), alignment=4)

    result = BruteForce().solve(problem, SolveOptions())

    assert result.plan is not None
    assert result.plan.claim.peak_spm == 13


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    drawn=st.lists(
        st.tuples(st.integers(-50, 50), st.integers(1, 30), st.integers(1, 100)),
        min_size=1,
        max_size=8,
    )
)
def test_lifetimes_survive_up_to_a_shift(
    drawn: list[tuple[int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    given_lives = lives(*((start, start + length, size) for start, length, size in drawn))
    file = tmp_path_factory.mktemp("lives") / "problem.json"
    write_problem(problem_of_lifetimes("some", given_lives), file)

    found = lifetimes_of_problem(read_problem(file))

    first = min(one.start for one in given_lives)
    assert found == tuple(
        replace(one, start=one.start - first, end=one.end - first) for one in given_lives
    )


def test_scratch_is_a_buffer_that_lives_while_its_task_runs() -> None:
    task = Task(index=0, name="t", cycles=(5,), scratch=24)
    machine = replace(star(1, 64), engines=())

    assert lifetimes_of_problem(Problem(name="p", machine=machine, tasks=(task,))) == (
        Lifetime(name="t scratch", start=0, end=5, bytes=24),
    )


def test_what_leaves_more_than_addresses_open_has_no_lifetimes() -> None:
    lone = replace(star(1, 1024), engines=())
    task = Task(index=0, name="t", cycles=(5,))

    with pytest.raises(SpmilpError, match="has 1 cores and 1 DMA engines, so lifetimes"):
        lifetimes_of_problem(chain(star(1, 1024), layers=1, strips=1))
    with pytest.raises(SpmilpError, match=r"buffer t0\[0\]: starts or ends in a memory"):
        lifetimes_of_problem(chain(lone, layers=1, strips=1))
    with pytest.raises(SpmilpError, match="tasks t and u: their order is open"):
        lifetimes_of_problem(
            Problem(name="p", machine=lone, tasks=(task, replace(task, index=1, name="u")))
        )
    with pytest.raises(SpmilpError, match="has no buffers, so there is nothing to place"):
        problem_of_lifetimes("none", ())


DATA = Path(__file__).parents[3] / "shared" / "data" / "minimalloc"


@pytest.mark.skipif(not DATA.exists(), reason="skipped: data not present")
def test_a_published_list_of_buffers_becomes_a_problem_and_comes_back() -> None:
    from spmilp.packing.minimalloc import read_table

    table = read_table(DATA / "A.1048576.csv")
    given_lives = tuple(
        Lifetime(name=name, start=start, end=end, bytes=item.size)
        for name, item in zip(table.ids, table.items, strict=True)
        for start, end in item.lifetimes
    )

    found = lifetimes_of_problem(problem_of_lifetimes("A", given_lives, capacity=1048576))

    first = min(one.start for one in given_lives)
    assert [one.bytes for one in found] == [one.bytes for one in given_lives]
    assert [one.start + first for one in found] == [one.start for one in given_lives]
    assert [one.end + first for one in found] == [one.end for one in given_lives]
