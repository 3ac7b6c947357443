"""Compile the kernels, or load them from the cache, before a clock runs."""

from spmilp.packing.clock import Clock
from spmilp.packing.decide import Decider
from spmilp.packing.heuristics import first_answers
from spmilp.packing.instance import instance_of
from spmilp.packing.items import Item, PackingProblem
from spmilp.packing.result import PackingOptions


def warm_up() -> None:
    """Run the heuristics and the search once on two items.

    The first time on a machine this compiles for some ten seconds; afterwards it loads the
    result from numba's cache in less than a second.
    """
    items = tuple(Item(size=1, lifetimes=(lifetime,)) for lifetime in ((0, 2), (1, 3)))
    instance = instance_of(PackingProblem(items=items, capacity=2))
    for _ in first_answers(instance):
        pass
    options = PackingOptions()
    Decider(instance, options, Clock(options)).decide(2)
