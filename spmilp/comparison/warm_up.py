"""Loading libraries and compiled code before a solver's clock starts."""

from contextlib import suppress

from spmilp.errors import SpmilpError
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.pipeline import solve_problem
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.base import SolveOptions


def warm_up(solver: str) -> None:
    """Run the list scheduler and a solver on a problem of one task.

    Raises
    ------
    SpmilpError
        If no solver has that name.
    """
    problem = smallest_problem()
    solve_problem(problem, "list", SolveOptions(time_limit=1.0))
    # A solver may refuse so small a problem; on the real one its error is reported.
    with suppress(SpmilpError):
        solve_problem(problem, solver, SolveOptions(time_limit=1.0))


def smallest_problem() -> Problem:
    """Return a problem with one task and no data."""
    machine = Machine(
        name="smallest",
        memories=(Memory(index=0, name="spm", kind=MemoryKind.SPM, size=64),),
        kinds=(CoreKind(index=0, name="core"),),
        cores=(Core(index=0, name="core", kind=0, memory=0),),
        links=(),
        engines=(),
    )
    return Problem(
        name="smallest", machine=machine, tasks=(Task(index=0, name="task", cycles=(1,)),)
    )
