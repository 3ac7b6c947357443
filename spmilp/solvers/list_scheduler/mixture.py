"""Each operator as the rule that served it best would have it."""

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.board import Board
from spmilp.solvers.list_scheduler.orders import by_priority, operator_of
from spmilp.solvers.list_scheduler.records import Ints, numbers


class Mixture:
    """What schedules by several rules say of each operator, and the best for each, together.

    An operator *advances* a schedule by the cycles from the end of the operator that ends before it
    to its own end: what it takes, as far as it does not hide behind others. No rule is the best one
    for all operators of a network: one with large weights wants the tiles with equal weights on one
    core, another one strips of its image. Operators do depend on each other, for tiles lie where
    those before them have left them; but on 8 networks the mixture of five assignments took between
    11 % less and 1 % more cycles than the best one of them.

    Parameters
    ----------
    problem
        What is scheduled. The orders that are mixed have its operators at the same places.
    """

    def __init__(self, problem: Problem) -> None:
        self._before = problem.predecessors()
        known: dict[object, int] = {}
        self._operator = numbers(
            known.setdefault(operator_of(task), len(known)) for task in problem.tasks
        )
        self._least: Ints | None = None
        self._position = np.arange(len(problem.tasks))
        self._cores = self._position

    def add(self, order: Ints, cores: Ints, board: Board) -> None:
        """Take from a finished schedule the operators that it comes through sooner than others.

        Parameters
        ----------
        order
            Of the tasks.
        cores
            The assignment, -1 where the scheduler has chosen; it will choose anew.
        """
        advances = self._advances(board.tasks["end"])
        if self._least is None:
            self._least = np.full_like(advances, advances.max(initial=0) + 1)
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        sooner = (advances < self._least)[self._operator]
        self._least = np.minimum(self._least, advances)
        self._position = np.where(sooner, position, self._position)
        self._cores = np.where(sooner, cores, self._cores)

    def mixed(self) -> tuple[Ints, Ints] | None:
        """Return an order and for each task its core or -1; ``None`` without any schedule."""
        if self._least is None:
            return None
        return by_priority(self._before, self._position.tolist()), self._cores

    def _advances(self, ends: Ints) -> Ints:
        last = np.zeros(int(self._operator.max(initial=-1)) + 1, np.int64)
        np.maximum.at(last, self._operator, ends)
        in_order = np.argsort(last, kind="stable")
        advances = np.empty_like(last)
        advances[in_order] = np.diff(last[in_order], prepend=0)
        return advances
