"""Heads and tails: what must happen before a task can start and after it has started."""

from spmilp.problem.problem import Problem
from spmilp.solvers.bounds.chains import Chains, Paths
from spmilp.solvers.bounds.cuts import heads_and_tails
from spmilp.solvers.bounds.movement import Movement

__all__ = ["Paths", "paths_of"]


def paths_of(problem: Problem, movement: Movement) -> Paths:
    """Return the best heads and tails known: from single chains, and from cuts of the graph."""
    return heads_and_tails(problem, movement, Chains(problem, movement))
