"""Several memories, each with items of its own."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from spmilp.packing.items import PackingProblem
from spmilp.packing.portfolio import DEFAULT_OPTIONS, pack
from spmilp.packing.result import Packing, PackingOptions


def pack_memories(
    problems: Sequence[PackingProblem], options: PackingOptions = DEFAULT_OPTIONS
) -> tuple[Packing, ...]:
    """Pack each memory; the limits of time and nodes hold for all of them together.

    Items of different memories never meet, so each memory is a problem of its own. What a memory
    leaves over of the limits goes to those that follow.

    Raises
    ------
    ValueError
        If a memory has no capacity, or its items are bound together in contradicting ways.
    """
    ends = None if options.time_limit is None else perf_counter() + options.time_limit
    nodes = options.node_limit
    packings = []
    for problem in problems:
        seconds = None if ends is None else max(0.0, ends - perf_counter())
        packing = pack(problem, replace(options, time_limit=seconds, node_limit=nodes))
        if nodes is not None:
            nodes = max(0, nodes - packing.statistics.nodes)
        packings.append(packing)
    return tuple(packings)
