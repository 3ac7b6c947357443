"""MILP against brute force and published optima; limits, refusals, and the model as a file."""

import csv
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.convert import read_job_shop
from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.clock import Clock, OutOfTimeError
from spmilp.solvers.exact.milp.solver import MilpOptions, MilpSolver, write_model
from tests.oracle.solver import BruteForce, proven
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

SEARCHED = (3, 104, 112, 26, 138, 7, 113)
"""Problems whose list schedule is not known to be optimal by a simple bound."""

SLOW = tiny_problem(80)
"""Two scratchpads with much to bring back: more than HiGHS solves in seconds."""

SHOPS = Path(__file__).parents[5] / "shared" / "data" / "fjsp"


def some_in_full(numbers: tuple[int, ...], default: int) -> list[object]:
    """Return parameters of which only the first few are not marked full."""
    full = (pytest.param(number, marks=pytest.mark.full) for number in numbers[default:])
    return [*numbers[:default], *full]


def with_little_dram(problem: Problem) -> Problem:
    """Return a problem whose DRAM has little room for spills."""
    size = sum(tensor.bytes for tensor in problem.tensors) + 8
    memories = tuple(
        replace(memory, size=size) if memory.kind is MemoryKind.DRAM else memory
        for memory in problem.machine.memories
    )
    return replace(problem, machine=replace(problem.machine, memories=memories))


@pytest.mark.parametrize("number", some_in_full(SEARCHED, 4))
def test_quantities_are_those_of_the_brute_force(number: int) -> None:
    problem = tiny_problem(number)
    oracle = BruteForce().solve(problem, SolveOptions())

    result = MilpSolver().solve(problem, SolveOptions())

    assert check(problem, result.plan) == ()
    assert result.status is SolveStatus.OPTIMAL
    assert proven(problem, result.plan) == proven(problem, oracle.plan)


@pytest.mark.full
@pytest.mark.parametrize("number", [104, 112, 138])
def test_a_dram_with_little_room_for_spills_counts(number: int) -> None:
    problem = with_little_dram(tiny_problem(number))

    result = MilpSolver().solve(problem, SolveOptions())

    oracle = BruteForce().solve(problem, SolveOptions())
    assert result.status is oracle.status is SolveStatus.OPTIMAL
    assert proven(problem, result.plan) == proven(problem, oracle.plan)


@pytest.mark.full
@pytest.mark.parametrize("number", [104, 112])
def test_channels_and_links_that_are_shared_are_those_of_the_brute_force(number: int) -> None:
    problem = tiny_problem(number)
    machine = problem.machine
    links = tuple(replace(link, rate=link.rate * Fraction(3, 2)) for link in machine.links)
    engines = tuple(replace(engine, channels=2) for engine in machine.engines)
    shared = replace(
        problem,
        machine=replace(machine, links=links, engines=engines),
        objective=Objective.of(Quantity.MAKESPAN),
    )
    oracle = BruteForce().solve(shared, SolveOptions())

    result = MilpSolver().solve(shared, SolveOptions())

    assert result.status is SolveStatus.OPTIMAL
    assert result.bound == oracle.bound


@pytest.mark.full
@pytest.mark.skipif(not SHOPS.exists(), reason="skipped: data not present")
@pytest.mark.parametrize("backend", ["highs", "cbc"])
@pytest.mark.parametrize("name", [f"fattahi{number}" for number in range(1, 6)])
def test_the_published_optimum_of_a_job_shop_is_proven(name: str, backend: str) -> None:
    with (SHOPS / "best_known.csv").open() as file:
        optima = {row["instance"]: int(row["optimum"]) for row in csv.DictReader(file)}
    problem = read_job_shop(SHOPS / f"{name}.txt")

    result = MilpSolver(MilpOptions(backend=backend)).solve(problem, SolveOptions())

    assert check(problem, result.plan) == ()
    assert result.status is SolveStatus.OPTIMAL
    assert (result.plan.claim.makespan, result.bound) == (optima[name], optima[name])


def test_what_the_brute_force_cannot_solve_is_proven_infeasible_with_the_reason() -> None:
    problem = tiny_problem(14)
    assert BruteForce().solve(problem, SolveOptions()).status is SolveStatus.INFEASIBLE

    result = MilpSolver().solve(problem, SolveOptions())

    assert result.status is SolveStatus.INFEASIBLE
    assert "no engine can bring" in result.reason


def test_rows_are_written_under_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(clock: Clock, share: float = 1.0) -> None:
        raise OutOfTimeError

    monkeypatch.setattr(Clock, "go_on", stop)
    result = MilpSolver().solve(SLOW, SolveOptions())

    assert (result.status, check(SLOW, result.plan)) == (SolveStatus.FEASIBLE, ())


@pytest.mark.parametrize(
    ("problem", "most"), [(chain(star(cores=8, spm=4096), 20, 32), 20_000), (SLOW, 100)]
)
def test_a_problem_beyond_the_limit_is_refused_with_both_numbers(
    problem: Problem, most: int
) -> None:
    result = MilpSolver(MilpOptions(most_whole=most)).solve(problem, SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert f"integer variables > {most}; use the solver cpsat" in result.reason


@pytest.mark.parametrize("name", ["gurobi", "SCIP_PY"])
def test_a_solver_that_is_not_installed_is_named(name: str) -> None:
    with pytest.raises(SpmilpError, match=f"the solver {name} is not installed; install it, or"):
        MilpSolver(MilpOptions(backend=name)).solve(tiny_problem(3), SolveOptions())


def test_a_solver_that_pulp_does_not_know_is_refused_with_those_that_it_knows() -> None:
    with pytest.raises(SpmilpError, match=r"PuLP knows no solver named 'abacus'; it knows .*highs"):
        MilpSolver(MilpOptions(backend="abacus")).solve(tiny_problem(3), SolveOptions())


READ_AND_SOLVE = """
import sys
import highspy

highs = highspy.Highs()
highs.silent()
assert highs.readModel(sys.argv[1]) == highspy.HighsStatus.kOk
highs.setOptionValue("presolve", "off")
highs.setOptionValue("mip_rel_gap", 0.0)
highs.run()
assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
print(highs.getObjectiveValue())
"""
"""HiGHS in a process of its own, for OR-Tools may be in this one."""


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize("number", [112, 3])
@pytest.mark.full
def test_read_back_the_model_has_the_optimum_of_the_problem(
    tmp_path: Path, number: int, suffix: str
) -> None:
    problem = tiny_problem(number)
    result = MilpSolver().solve(problem, SolveOptions())
    assert result.status is SolveStatus.OPTIMAL
    files = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]

    for file in files:
        write_model(problem, file)

    assert files[0].read_bytes() == files[1].read_bytes()
    command = [sys.executable, "-c", READ_AND_SOLVE, str(files[0])]
    found = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    # HiGHS 1.16 prints its name first.
    assert float(found.split()[-1]) == pytest.approx(result.bound)


def test_what_is_too_large_leaves_an_older_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "model.mps"
    file.write_text("older")

    with pytest.raises(SpmilpError, match="integer variables > 20; use the solver cpsat"):
        write_model(tiny_problem(112), file, settings=MilpOptions(most_whole=20))

    assert file.read_text() == "older"
