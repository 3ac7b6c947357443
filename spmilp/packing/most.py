"""As much as first fit gets into a capacity, where not everything can be packed."""

import numpy as np

from spmilp.packing.heuristics import outline_of, place_in_order
from spmilp.packing.instance import instance_of
from spmilp.packing.items import PackingProblem
from spmilp.packing.orders import keys_of, order_by
from spmilp.units import Bytes

ORDERS = (("area", "length"), ("length", "area"), ("size", "length"))
"""By which items are placed at first."""

ROUNDS = 8
"""For each order: what was left over goes first in the next one."""


def pack_most(problem: PackingProblem) -> tuple[Bytes | None, ...]:
    """Return offsets inside the capacity, and ``None`` for the items that found no place.

    Their bytes times the lengths of their lives are as little as some rounds of first fit have
    found. What was left over goes first in the next round (squeaky wheel optimisation: Joslin and
    Clements, Journal of Artificial Intelligence Research 10, 1999).

    Raises
    ------
    ValueError
        If there is no capacity, or items are bound together in contradicting ways.
    """
    if problem.capacity is None:
        raise ValueError("the problem has no capacity to pack into")
    instance = instance_of(problem)
    outline, keys, latest = (
        outline_of(instance),
        keys_of(instance),
        instance.latest(problem.capacity),
    )
    best, least = np.full(instance.count, -1, np.int64), np.inf
    for names in ORDERS:
        order = order_by(keys, names, 0.0, np.random.default_rng(0))
        for _ in range(ROUNDS):
            offsets = place_in_order(outline, order, tightest=False)
            is_left = offsets > latest
            left = float(keys["area"][is_left].sum())
            if left < least:
                best, least = np.where(is_left, -1, offsets), left
            if not is_left.any():
                break
            goes_first = is_left[order]
            order = np.concatenate((order[goes_first], order[~goes_first]))
        if least == 0:
            break
    groups = instance.groups
    of_group = groups.offset.copy()
    of_group[instance.group] = np.where(best < 0, -1, best * instance.unit)
    found = of_group[groups.of_item].tolist()
    return tuple(None if offset < 0 else offset for offset in found)
