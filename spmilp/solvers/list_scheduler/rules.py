"""The rules of the list scheduler by name, and in which order they are tried."""

from collections.abc import Callable

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.list_scheduler.fused_bands import in_bands
from spmilp.solvers.list_scheduler.orders import (
    depth_first,
    in_turns,
    layer_by_layer,
    longest_path_first,
    stationary,
)


def _whatever_cores(rule: Callable[[Problem], Ints]) -> Callable[[Problem, Ints], Ints]:
    return lambda problem, cores: rule(problem)


ORDERS: dict[str, Callable[[Problem, Ints], Ints]] = {
    "turns": in_turns,
    "bands": in_bands,
    "stationary": _whatever_cores(stationary),
    "path": _whatever_cores(longest_path_first),
    "layers": _whatever_cores(layer_by_layer),
    "depth": _whatever_cores(depth_first),
}

FIRST_RULES = (
    ("near", "turns"),
    ("near", "bands"),
    ("blocks", "bands"),
    ("earliest", "path"),
    ("rotating", "path"),
    ("earliest", "depth"),
)
"""Assignments and orders to begin with: large problems have time for no more.

On the problems of the benchmark suite ``networks`` the first is 14 % worse than the best of all 24
without bands for each, in geometric mean, and the best of the four without bands 1.4 %; no other
one and no other four did better. Bands do what turns do unless memory is tight.
"""

EVALUATION_RULES = FIRST_RULES[:5]
"""On the same problems those without bands are 2.4 % worse than the best of all; no other three did
better."""

MIXED_ORDERS = (
    ("turns",),
    ("bands",),
    ("turns", "stationary"),
    ("stationary",),
    ("path",),
    ("layers",),
    ("stationary", "layers"),
    ("depth",),
)
"""Orders whose schedules are mixed when all of their rules have been tried."""
