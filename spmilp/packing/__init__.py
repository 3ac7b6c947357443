"""Offsets for given lifetimes: exact, with proofs, and fast.

    items, result       the problem; options, limits and the answer
    portfolio           the front: bounds, heuristics and search in turn; infeasible subsets
    check               the independent check
    instance            from a problem to scaled integers: merged items, conflicts, obstacles,
                        bounds
    heuristics          constructive packings, published ones among them
    decide              the exact decision at one capacity: runs of the search
    arrays, kernel, search
                        the depth-first search: its arrays, its functions with the proofs of its
                        prunings, its runs and restarts
    outlines            conflicts and simple ways to place all items, compiled as the search is
    minimalloc          MiniMalloc's CSV files
    pools, assignment   buffers and several pools; which lies in which, by the packer's proofs
    front               one call from a file and pools to an answer
A packing is offsets in one memory, or in each of several; nothing here knows networks or machines.
"""

from spmilp.packing.assignment import pack_pools
from spmilp.packing.check import PackingViolation, check_packing, check_pools
from spmilp.packing.items import Item, PackingProblem
from spmilp.packing.pools import Buffer, Pool, PoolPacking, PoolProblem
from spmilp.packing.portfolio import minimise, pack, pack_by
from spmilp.packing.result import Packing, PackingOptions, PackingStatus

__all__ = [
    "Buffer",
    "Item",
    "Packing",
    "PackingOptions",
    "PackingProblem",
    "PackingStatus",
    "PackingViolation",
    "Pool",
    "PoolPacking",
    "PoolProblem",
    "check_packing",
    "check_pools",
    "minimise",
    "pack",
    "pack_by",
    "pack_pools",
]
