"""What is believed of a solver, and what is made of its values."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from random import Random
from typing import Any

import pulp
import pytest

from spmilp.errors import SpmilpError
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.exact.milp import backend as inside
from spmilp.solvers.exact.milp import process, solver
from spmilp.solvers.exact.milp.process import run
from spmilp.solvers.exact.milp.program import Limits, Outcome, Program, total
from spmilp.solvers.exact.milp.solver import MilpSolver
from tests.solvers.tiny_problems import tiny_problem

LIMITS = Limits(seconds=10.0, threads=1, seed=0)


def installed(name: str) -> str:
    """Return PuLP's name for a solver; CBC comes with PuLP 3, and with ``pulp[cbc]`` of PuLP 4."""
    try:
        return process.backend_name(name)
    except SpmilpError as error:
        pytest.skip(str(error))


def knapsack() -> Program:
    """Return a program whose least value is 3: one of two, the cheaper one is forbidden."""
    program = Program()
    one, other = program.binary("one"), program.binary("other")
    program.at_least(one + other, 1)
    program.at_most(one, 0)
    program.objective = 2 * one + 3 * other
    return program


@pytest.mark.parametrize("name", ["highs", "cbc"])
def test_an_optimum_comes_with_its_bound_and_what_has_none_is_infeasible(name: str) -> None:
    backend = installed(name)
    program = knapsack()
    program.objective = program.objective + 40

    found = run(program, backend, LIMITS)
    program.at_most(program.objective, 42)
    nothing = run(program, backend, LIMITS)

    assert (found.complete, found.infeasible, found.bound) == (True, False, 43)
    assert found.values == pytest.approx([0.0, 1.0])
    assert (nothing.infeasible, nothing.values, nothing.bound) == (True, None, None)


class Scripted(pulp.LpSolver):
    """A solver that says how it has ended as those of the PuLP that is installed do.

    PuLP before 4 calls a run optimal that a limit has stopped with a solution.
    """

    name = "SCRIPTED"

    def __init__(self, end: str, msg: bool = False) -> None:
        super().__init__(msg=msg)
        self._end = end

    def actualSolve(self, lp: Any, callback: Any = None) -> Any:  # noqa: N802
        for variable in lp.variables():
            variable.varValue = 1.0
        if hasattr(pulp, "LpSolveStatus"):
            names = {"optimal": "Optimal", "stopped": "TimeLimit", "infeasible": "Infeasible"}
            status = pulp.LpSolveStatus[names[self._end]]
            return self.buildStats(lp, status, self._end != "infeasible", start=(0.0, 0.0))
        status, state = {
            "optimal": (pulp.LpStatusOptimal, pulp.LpSolutionOptimal),
            "stopped": (pulp.LpStatusOptimal, pulp.LpSolutionIntegerFeasible),
            "infeasible": (pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible),
        }[self._end]
        lp.assignStatus(status, state)
        return status


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ("optimal", Outcome(values=[1.0, 1.0], bound=5, complete=True)),
        ("stopped", Outcome(values=[1.0, 1.0])),
        ("infeasible", Outcome(infeasible=True)),
    ],
)
def test_a_bound_is_believed_of_an_optimum_alone(
    end: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulp, "getSolver", lambda name, **settings: Scripted(end, **settings))

    assert inside.run(knapsack(), "SCRIPTED", LIMITS) == outcome


def test_pulp_and_its_solvers_stay_out_of_this_process() -> None:
    """OR-Tools and highspy cannot share one; what runs CP-SAT must be able to run HiGHS too."""
    script = (
        "import sys\n"
        "from ortools.sat.python import cp_model\n"
        "from spmilp.solvers.exact.milp.process import backend_name\n"
        "from spmilp.solvers.exact.milp.solver import MilpSolver\n"
        "print(backend_name('highs'), 'pulp' in sys.modules, 'highspy' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.split() == ["HiGHS", "False", "False"]


def test_a_process_that_is_gone_is_replaced() -> None:
    process._child().process.kill()
    with pytest.raises(SpmilpError):
        run(knapsack(), "HiGHS", LIMITS)

    assert run(knapsack(), "HiGHS", LIMITS).bound == 3


def test_a_run_that_ends_at_its_limit_of_nodes_is_not_complete_and_keeps_its_solution() -> None:
    """Two numbers of 16 bits for each of 24 items, to be halved: long after the first node."""
    program, random = Program(), Random(1)
    items = [program.binary("first_half") for _ in range(24)]
    missed = [program.number("missed", 0, 2**20) for _ in range(2)]
    for miss in missed:
        sizes = [random.randrange(2**16) for _ in items]
        first = total(size * item for size, item in zip(sizes, items, strict=True))
        program.at_least(miss, first - sum(sizes) // 2)
        program.at_least(miss, sum(sizes) // 2 - first)
    program.objective = total(missed)

    found = run(program, "HiGHS", Limits(seconds=None, threads=1, seed=0, nodes=1))

    assert not found.complete
    assert found.values is not None
    assert found.bound == 0


@pytest.mark.full
def test_a_process_that_hangs_is_given_up_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LEAST_GRACE", 0.3)
    os.kill(process._child().process.pid, signal.SIGSTOP)
    with pytest.raises(process.SolverProcessError, match="no answer"):
        run(knapsack(), "HiGHS", Limits(seconds=0.1, threads=1, seed=0))

    assert run(knapsack(), "HiGHS", LIMITS).bound == 3


@pytest.mark.full
@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGSTOP])
def test_a_plan_outlives_the_process_of_the_solver(
    signalled: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAST_GRACE", 0.3)
    real = solver.run

    def run_and_fail(program: Program, backend: str, limits: Limits) -> Outcome:
        os.kill(process._child().process.pid, signalled)
        return real(program, backend, replace(limits, seconds=0.1))

    monkeypatch.setattr(solver, "run", run_and_fail)
    problem = tiny_problem(80)
    result = MilpSolver().solve(problem, SolveOptions(time_limit=10.0))

    assert result.plan is not None
    assert result.violations(problem) == ()
