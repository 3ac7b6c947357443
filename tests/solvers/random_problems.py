"""Random small problems of every kind that the format allows, as a hypothesis strategy."""

from dataclasses import replace

from hypothesis import strategies as st

from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import Problem
from tests.solvers.tiny_problems import tiny_problem

ROOM = 4
"""How many times as large as in tiny problems memories on the chip are: for more tasks."""


def problems(most_tasks: int = 12) -> st.SearchStrategy[Problem]:
    """Tiny problems of more tasks, with room for them."""
    return st.integers(0, 2**32).map(lambda number: _with_room(tiny_problem(number, most_tasks)))


def _with_room(problem: Problem) -> Problem:
    memories = tuple(
        one if one.kind is MemoryKind.DRAM else replace(one, size=ROOM * (one.size or 0))
        for one in problem.machine.memories
    )
    return replace(problem, machine=replace(problem.machine, memories=memories))
