"""Offsets for given lifetimes: exact, with proofs, and fast.

``items``, ``result``
    The problem, the options and the answer.
``portfolio``
    The front: bounds, heuristics, search and CP-SAT in turn; narrowing the height from both sides.
``check``
    The independent check.
``groups``, ``instance``, ``obstacles``, ``conflicts``
    From a problem to scaled integers: merged items, sections, forbidden offsets, pairs.
``bounds``
    Lower bounds on the height.
``heuristics``, ``skyline``, ``outline``, ``orders``
    Constructive packings.
``decide``, ``restarts``, ``tables``, ``search``, ``cliques``, ``clock``
    The exact decision at one capacity: compiled search with restarts, alternating with CP-SAT.
``infeasible_subset``
    Few items out of a proof that there is no packing.
``minimalloc``, ``columns``
    MiniMalloc's CSV files.
"""

from spmilp.packing.check import PackingViolation, check_packing
from spmilp.packing.items import Item, PackingProblem
from spmilp.packing.portfolio import minimise, pack
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
]
