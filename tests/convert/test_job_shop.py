"""Flexible job shops as problems."""

import csv
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.errors import FileError, SpmilpError
from spmilp.problem.convert.job_shop import job_shop_text, read_job_shop
from spmilp.problem.problem import Problem, Task
from spmilp.problem.read import read_problem
from spmilp.problem.write import write_problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.bruteforce.solver import BruteForce
from tests.solvers.chains import chain, star

# Two jobs of two operations on two machines. Job 1: 25 or 37, then 32 or 24; job 2: 45 or 65, then
# 21 on machine 1 only.
SHOP = "2 2 2\n2 2 1 25 2 37 2 1 32 2 24\n2 2 1 45 2 65 1 1 21\n"


def shop(tmp_path: Path, text: str) -> Problem:
    file = tmp_path / "shop.txt"
    file.write_text(text)
    return read_job_shop(file)


def test_operations_become_tasks_in_chains_with_a_time_for_each_machine(tmp_path: Path) -> None:
    problem = shop(tmp_path, SHOP)

    assert [task.cycles for task in problem.tasks] == [(25, 37), (32, 24), (45, 65), (21, None)]
    assert [task.after for task in problem.tasks] == [(), (0,), (), (2,)]
    assert [task.name for task in problem.tasks] == ["job1.1", "job1.2", "job2.1", "job2.2"]
    assert len(problem.machine.cores) == len(problem.machine.kinds) == 2
    assert problem.name == "shop"


def test_the_optimum_of_the_problem_is_that_of_the_shop(tmp_path: Path) -> None:
    # Job 2 first takes machine 1 in [0, 45) and again in [45, 66); job 1 takes machine 2 in [0, 37)
    # and [37, 61). Job 2 alone needs 66, so no plan is shorter.
    problem = shop(tmp_path, SHOP)

    result = BruteForce().solve(problem, SolveOptions())

    assert result.status is SolveStatus.OPTIMAL
    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert result.plan.claim.makespan == 66


@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_optimum_is_that_of_all_sequences_tried(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machines = 2
    times = st.dictionaries(st.integers(1, machines), st.integers(1, 9), min_size=1)
    jobs = data.draw(st.lists(st.lists(times, min_size=1, max_size=2), min_size=1, max_size=2))
    lines = [f"{len(jobs)} {machines}"]
    for job in jobs:
        words = [len(job)]
        for operation in job:
            words += [len(operation), *(w for pair in operation.items() for w in pair)]
        lines.append(" ".join(map(str, words)))
    problem = shop(tmp_path_factory.mktemp("shop"), "\n".join(lines))

    result = BruteForce().solve(problem, SolveOptions())

    assert result.plan is not None
    assert result.plan.claim.makespan == least_makespan(jobs)


def least_makespan(jobs: list[list[dict[int, int]]]) -> int:
    """Try every order of operations with every choice of machines, each as early as it can."""

    def orders(done: list[int]) -> list[list[int]]:
        if all(count == len(job) for count, job in zip(done, jobs, strict=True)):
            return [[]]
        found = []
        for number, count in enumerate(done):
            if count < len(jobs[number]):
                after = [*done[:number], count + 1, *done[number + 1 :]]
                found += [[number, *rest] for rest in orders(after)]
        return found

    best = None
    for order in orders([0] * len(jobs)):
        step = [0] * len(jobs)
        sequence = []
        for number in order:
            sequence.append((number, jobs[number][step[number]]))
            step[number] += 1
        for choice in product(*(operation.items() for _, operation in sequence)):
            free, ready = {}, [0] * len(jobs)
            for (number, _), (machine, cycles) in zip(sequence, choice, strict=True):
                end = max(free.get(machine, 0), ready[number]) + cycles
                free[machine] = ready[number] = end
            best = max(ready) if best is None else min(best, max(ready))
    return best or 0


def test_a_shop_survives_the_way_to_a_problem_file_and_back(tmp_path: Path) -> None:
    problem = shop(tmp_path, SHOP)
    write_problem(problem, tmp_path / "problem.json")

    text = job_shop_text(read_problem(tmp_path / "problem.json"))

    assert text == SHOP.replace("2 2 2\n", "2 2 1.75\n", 1)
    assert shop(tmp_path, text) == problem


def test_blank_lines_tabs_and_a_mean_with_a_point_are_read(tmp_path: Path) -> None:
    text = SHOP.replace("2 2 2\n", "\n2\t2\t1.75\r\n\n").replace("\n2 2 1 45", "\n\n 2 2 1 45 ")

    assert shop(tmp_path, text) == shop(tmp_path, SHOP)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a first line"),
        ("2\n", "line 1: has 1 numbers, expected jobs, machines"),
        ("2 2\n1 1 1 5\n", "line 1: 2 jobs are announced, but 1 lines follow"),
        ("1 2\n1 1 3 5\n", "line 2: operation 1: machine 3, but there are 2"),
        ("1 2\n1 2 1 5\n", "line 2: ends after 4 numbers, expected a machine of operation 1"),
        ("1 2\n1 1 1 0\n", "line 2: '0', expected a time of operation 1, a whole number from 1"),
        ("1 2\n1 1 1 2.5\n", "line 2: '2.5', expected a time of operation 1"),
        ("1 2\n1 2 1 5 1 6\n", "line 2: operation 1: machine 1 is given twice"),
        ("1 2\n1 1 1 5 7\n", "line 2: has 5 numbers, but its 1 operations end after 4"),
        ("1 2\n\nx 1 1 5\n", "line 3: 'x', expected the number of operations"),
        ("1 20000\n1 1 1 5\n", "line 1: announces 20000 machines, expected at most 10000"),
        (f"1 1\n1 1 1 {'9' * 5000}\n", "99…', expected a time"),
    ],
)
def test_a_broken_file_is_refused_with_line_and_expectation(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(FileError, match=r"shop\.txt") as error:
        shop(tmp_path, text)
    assert message in str(error.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(FileError, match="is no text in UTF-8"):
        read_job_shop(tmp_path / "shop.txt")


def test_a_problem_with_data_is_no_job_shop() -> None:
    with pytest.raises(SpmilpError, match=r"task conv0\[0\]: reads 2 slices, writes 1 buffers"):
        job_shop_text(chain(star(1, 1024), layers=1, strips=1))


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (((), (), (0, 1)), "task t2: follows 2 tasks"),
        (((), (0,), (0,)), "task t0: 2 tasks follow it"),
    ],
)
def test_a_problem_whose_tasks_are_no_chains_is_no_job_shop(
    after: tuple[tuple[int, ...], ...], message: str
) -> None:
    tasks = tuple(
        Task(index=n, name=f"t{n}", cycles=(5,), after=some) for n, some in enumerate(after)
    )
    with pytest.raises(SpmilpError, match=message):
        job_shop_text(Problem(name="net", machine=star(1, 64), tasks=tasks))


def test_cores_of_one_kind_are_machines_of_equal_times() -> None:
    task = Task(index=0, name="t", cycles=(5,))

    assert job_shop_text(Problem(name="p", machine=star(2, 64), tasks=(task,))) == (
        "1 2 2\n1 2 1 5 2 5\n"
    )


DATA = Path(__file__).parents[3] / "shared" / "data" / "fjsp"


@pytest.mark.skipif(not DATA.exists(), reason="skipped: data not present")
def test_every_published_file_reads_and_bounds_stay_below_its_optimum() -> None:
    from spmilp.bounds.best import best_bound

    with (DATA / "best_known.csv").open() as file:
        optima = {row["instance"]: int(row["optimum"]) for row in csv.DictReader(file)}
    for name, optimum in optima.items():
        problem = read_job_shop(DATA / f"{name}.txt")
        assert 0 < best_bound(problem).value <= optimum, name
