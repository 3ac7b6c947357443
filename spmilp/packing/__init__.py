"""Offsets for given lifetimes: exact, with proofs, and fast.

    items, result                   the problem; options, limits and the answer
    portfolio                       the front: bounds, heuristics, search and CP-SAT in turn
    check                           the independent check
    groups, instance, obstacles     from a problem to scaled integers: merged items, conflicts
    apart, clique_cover             pairs kept apart, as items that live at added instants
    bounds                          lower bounds on the height
    heuristics, orders              constructive packings
    usmp                            those of TVM's memory planner
    most                            as much as fits, where not everything does
    decide, restarts, tables, search, cliques
                                    the exact decision at one capacity: search and CP-SAT
    infeasible_subset               few items out of a proof that there is no packing
    minimalloc, columns, pairs      MiniMalloc's CSV files, with pairs kept apart and together
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
