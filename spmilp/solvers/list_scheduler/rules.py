"""The rules of the list scheduler by name, the order in which they are tried, and mixtures."""

from collections.abc import Callable

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.solvers.list_scheduler.orders import (
    critical_path,
    depth_first,
    fused_bands,
    layer_by_layer,
    operand_stationary,
    round_robin,
)


def _whatever_cores(rule: Callable[[Problem], Ints]) -> Callable[[Problem, Ints], Ints]:
    return lambda problem, cores: rule(problem)


ORDERS: dict[str, Callable[[Problem, Ints], Ints]] = {
    "round_robin": round_robin,
    "fused_bands": fused_bands,
    "operand_stationary": _whatever_cores(operand_stationary),
    "critical_path": _whatever_cores(critical_path),
    "layer_by_layer": _whatever_cores(layer_by_layer),
    "depth_first": _whatever_cores(depth_first),
}

BANDS_RULES = (("across_bands", "fused_bands"), ("locality", "fused_bands"))
"""They are the same where no operators are cut into bands."""

SPARING, SPARING_BANDS = "sparing", "sparing_bands"
SPARING_ORDERS = {SPARING: "round_robin", SPARING_BANDS: "fused_bands"}
"""Orders under other names, with weights by which bytes of DRAM are dear: cores rather wait for
what others load, and results rather stay. On layers of language models it takes up to a fifth less.
"""

CHAINS_RULES = (("locality", SPARING_BANDS), ("locality", "fused_bands"))
"""Where results are added up block by block as they are made."""

FIRST_RULES = (
    ("locality", "round_robin"),
    BANDS_RULES[0],
    ("contiguous", "fused_bands"),
    ("earliest_finish", "critical_path"),
    ("rotating_contiguous", "critical_path"),
    ("earliest_finish", "depth_first"),
)
"""Assignments and orders to begin with: large problems have time for no more.

On the problems of the benchmark suite ``networks`` the first is 14 % worse than the best of all 24
rules without fused bands, in geometric mean, and the best of the four here without them 1.4 %; no
other one and no other four did better. Fused bands differ from ``round_robin`` only where memory is
tight.
"""

EVALUATION_RULES = (
    FIRST_RULES[0],
    ("locality", SPARING),
    *FIRST_RULES[1:5],
    ("earliest_finish", "fused_bands"),
)
"""On the same problems the best of those without fused bands is 2.4 % worse than the best of all;
no other three did better. The last one is 23 % better than the others on SqueezeNet for Cell."""

MIXED_ORDERS = (
    ("round_robin",),
    ("fused_bands",),
    ("round_robin", "operand_stationary"),
    ("operand_stationary",),
    ("critical_path",),
    ("layer_by_layer",),
    ("operand_stationary", "layer_by_layer"),
    ("depth_first",),
)
"""Orders whose schedules are mixed when all of their rules have been tried."""


class RuleMixture:
    """Selects a rule for each operator from schedules by several rules.

    An operator *advances* a schedule by the cycles from the end of the operator that ends before it
    to its own end: the time that it takes and that no other operator hides. The rule that advances
    least is selected. No rule is the best one for all operators of a network: one with large
    weights wants the tiles with equal weights on one core, another one strips of its image.
    Operators do depend on each other, for tiles lie where those before them have left them; but on
    8 networks the mixture of five assignments took between 11 % less and 1 % more cycles than the
    best one of them.

    Parameters
    ----------
    operators
        Of each task, as a number. The orders that are mixed have operators at the same places.

    Attributes
    ----------
    position
        For each task its place in an order.
    cores
        For each task its core, or -1 where the scheduler is to choose.
    """

    def __init__(self, operators: Ints) -> None:
        self._operators = operators
        self._least = np.full(int(operators.max(initial=-1)) + 1, NEVER)
        self.position = np.zeros_like(operators)
        self.cores = np.full_like(operators, NONE)

    def add(self, order: Ints, cores: Ints, state: ScheduleState) -> None:
        """Select the rule of a schedule for the operators that advance it less than the others.

        Parameters
        ----------
        order
            Of the tasks.
        cores
            The assignment, -1 where the scheduler has chosen; it will choose anew.
        """
        advances = advances_of(self._operators, state)
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        sooner = (advances < self._least)[self._operators]
        self._least = np.minimum(self._least, advances)
        self.position = np.where(sooner, position, self.position)
        self.cores = np.where(sooner, cores, self.cores)


def advances_of(operators: Ints, state: ScheduleState) -> Ints:
    """Return the cycles by which each operator advances a schedule; see :class:`RuleMixture`.

    Parameters
    ----------
    operators
        Of each task, as a number.
    """
    last = np.zeros(int(operators.max(initial=-1)) + 1, operators.dtype)
    np.maximum.at(last, operators, state.tasks["end"])
    in_order = np.argsort(last, kind="stable")
    advances = np.empty_like(last)
    advances[in_order] = np.diff(last[in_order], prepend=0)
    return advances
