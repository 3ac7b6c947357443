"""Heads and tails: what must happen before a task can start and after it has started."""

from spmilp.bounds.chains import Chains, Paths
from spmilp.bounds.cuts import heads_and_tails
from spmilp.bounds.movement import Movement
from spmilp.problem.problem import Problem

__all__ = ["Paths", "paths_of"]


def paths_of(problem: Problem, movement: Movement) -> Paths:
    """Return the best heads and tails known: from single chains, and from cuts of the graph."""
    return heads_and_tails(problem, movement, Chains(problem, movement))
