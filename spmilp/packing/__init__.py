"""Offsets for given lifetimes: exact, with proofs, and fast.

    items, result       the problem; options, limits and the answer
    portfolio           the front: bounds, heuristics, search and CP-SAT in turn; infeasible subsets
    check               the independent check
    groups, instance    from a problem to scaled integers: merged items, pairs kept apart as items
                        that live at added instants, conflicts, obstacles, bounds
    heuristics          constructive packings, published ones among them
    decide              the exact decision at one capacity: search and CP-SAT in turn
    rules, arrays, kernel, search
                        the compiled depth-first search: each pruning with its proof, its arrays,
                        its functions, its runs and restarts
    minimalloc          MiniMalloc's CSV files, with pairs kept apart and together
A packing is offsets in one memory; nothing here knows networks or machines.
"""

from spmilp.packing.check import PackingViolation, check_packing
from spmilp.packing.items import Item, PackingProblem
from spmilp.packing.portfolio import minimise, pack, pack_by
from spmilp.packing.result import Packing, PackingOptions, PackingStatistics, PackingStatus

__all__ = [
    "Item",
    "Packing",
    "PackingOptions",
    "PackingProblem",
    "PackingStatistics",
    "PackingStatus",
    "PackingViolation",
    "check_packing",
    "minimise",
    "pack",
    "pack_by",
]
