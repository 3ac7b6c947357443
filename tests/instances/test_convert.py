"""Job shops and lists of buffers as problems."""

from pathlib import Path

import pytest

from benchmarks.convert import read_job_shop, read_lifetimes
from spmilp.errors import FileError, SpmilpError
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.cpsat.solver import CpSatSolver

# Job 1: 25 or 37, then 32 or 24; job 2: 45 or 65, then 21 on machine 1 only.
SHOP = "2 2 2\n2 2 1 25 2 37 2 1 32 2 24\n2 2 1 45 2 65 1 1 21\n"
BUFFERS = "id,lower,upper,size\nx,0,4,8\ny,2,6,4\nz,4,9,8\n"


def test_operations_become_tasks_in_chains_with_a_time_for_each_machine(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text(SHOP)
    problem = read_job_shop(tmp_path / "shop.txt")

    assert [task.cycles for task in problem.tasks] == [(25, 37), (32, 24), (45, 65), (21, None)]
    assert [task.after for task in problem.tasks] == [(), (0,), (), (2,)]
    assert [task.name for task in problem.tasks] == ["job1.1", "job1.2", "job2.1", "job2.2"]


@pytest.mark.parametrize(
    "text",
    ["", "2 2\n1 1 1 5\n", "1 2\n1 1 3 5\n", "1 2\n1 2 1 5 1 7\n", "1 2\n1 1 1 5 7\n", "1 2\nx\n"],
)
def test_a_broken_job_shop_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "shop.txt").write_text(text)
    with pytest.raises(FileError, match=r"shop\.txt"):
        read_job_shop(tmp_path / "shop.txt")


def test_lifetimes_become_a_chain_of_tasks_that_leaves_addresses_open(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(BUFFERS)
    problem = read_lifetimes(tmp_path / "in.csv")
    result = CpSatSolver().solve(problem, SolveOptions())

    assert [task.cycles for task in problem.tasks] == [(2,), (2,), (2,), (3,)]
    assert [task.writes for task in problem.tasks] == [(0,), (1,), (2,), ()]
    assert [task.reads for task in problem.tasks] == [(), (0,), (1,), (2,)]
    # x and z never meet; y meets both.
    assert result.status is SolveStatus.OPTIMAL
    assert result.plan is not None
    assert result.plan.claim.peak_spm == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,lower,upper,size,offset\nx,0,4,8,16\n", "id x has a fixed offset or gaps"),
        ("id,lower,upper,size,alignment\nx,0,9,8,2\ny,0,9,8,4\n", "alignments of 2, 4 B"),
        ("id,lower,upper,size\n", "has no buffers"),
    ],
)
def test_buffers_that_a_problem_cannot_hold_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(SpmilpError, match=message):
        read_lifetimes(tmp_path / "in.csv")
