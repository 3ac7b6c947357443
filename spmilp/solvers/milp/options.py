"""Settings of the MILP solver, and the models that are too large for it."""

from collections import Counter
from dataclasses import dataclass

from spmilp.errors import SpmilpError
from spmilp.problem.problem import Problem
from spmilp.solvers.milp.program import Program
from spmilp.solvers.milp.structure import Structure

ADVICE = "use the solver cpsat, or a smaller problem (about ten tasks)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MilpOptions:
    """Settings beside :class:`~spmilp.solvers.base.SolveOptions`.

    Parameters
    ----------
    backend
        The name of a solver in PuLP: ``HiGHS``, ``CBC``, ``GUROBI``, ``CPLEX_PY`` ...
    most_whole
        The largest model that is tried, in variables that have to be integers.
    most_candidates
        How often a slice may be brought into one memory at the most, where a proof asks for it.
    """

    backend: str = "HiGHS"
    most_whole: int = 20_000
    most_candidates: int = 6


class TooLargeError(SpmilpError):
    """The model would be larger than what is worth trying."""


def refuse_problem(problem: Problem, settings: MilpOptions) -> None:
    """Refuse a problem by its tasks and memories alone.

    Raises
    ------
    TooLargeError
        If every model of it would be too large: each task has a variable for each slice that it
        reads and each memory in which it may run, at the least.
    """
    reads = sum(1 + len(task.reads) for task in problem.tasks)
    memories = len({core.memory for core in problem.machine.cores})
    _refuse(reads * memories, settings, "at least ")


def refuse_structure(structure: Structure, settings: MilpOptions) -> None:
    """Refuse a model before it is built.

    Raises
    ------
    TooLargeError
        If the fills and servers of candidates, and the orders of those in one memory in time and
        by address, need too many variables.
    """
    fills = sum(len(shape.fills) + len(shape.multicasts) for shape in structure.shapes.values())
    servers = sum(map(len, structure.servers.values()))
    items = Counter(key.memory for key, shape in structure.shapes.items() if not shape.lasting)
    pairs = sum(count * (count - 1) for count in items.values())
    _refuse(fills + servers + pairs, settings, "about ")


def refuse_program(program: Program, settings: MilpOptions) -> None:
    """Refuse a model that is built.

    Raises
    ------
    TooLargeError
        If it has too many variables that have to be integers.
    """
    _refuse(program.whole_variables, settings)


def _refuse(count: int, settings: MilpOptions, how: str = "") -> None:
    if count > settings.most_whole:
        raise TooLargeError(
            f"the MILP would have {how}{count} integer variables > {settings.most_whole}; {ADVICE}"
        )
