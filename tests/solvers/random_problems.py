"""Random small problems of every kind that the format allows, also as a hypothesis strategy."""

from dataclasses import replace

from hypothesis import strategies as st

from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import Problem
from tests.solvers.tiny_problems import tiny_problem

ROOM = 4
"""How many times as large as in tiny problems memories on the chip are: for more tasks."""


def problems(most_tasks: int = 12) -> st.SearchStrategy[Problem]:
    """Small problems of any number."""
    return st.integers(0, 2**32).map(lambda number: small_problem(number, most_tasks))


def small_problem(number: int, most_tasks: int = 12) -> Problem:
    """Return the tiny problem of a number with more tasks, and with room for them."""
    problem = tiny_problem(number, most_tasks)
    memories = tuple(
        one if one.kind is MemoryKind.DRAM else replace(one, size=ROOM * (one.size or 0))
        for one in problem.machine.memories
    )
    return replace(problem, machine=replace(problem.machine, memories=memories))
