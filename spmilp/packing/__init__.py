"""Offsets for given lifetimes: exact, with proofs, and fast."""

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
