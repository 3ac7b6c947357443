"""One call from buffers, in a file or not, and pools to a packing."""

import math
from collections.abc import Sequence
from pathlib import Path

from spmilp import quantities
from spmilp.packing.assignment import pack_pools
from spmilp.packing.minimalloc import read_table
from spmilp.packing.pools import Buffer, Pool, PoolPacking, PoolProblem, pool_of
from spmilp.packing.result import PackingOptions


def pack(
    buffers: Path | str | Sequence[Buffer],
    pools: Sequence[Pool | str],
    *,
    minimise: bool = False,
    time_limit: float | str = 60.0,
    node_limit: int | None = None,
    seed: int = 0,
) -> PoolPacking:
    """Place buffers in pools at the least cost: bytes times the cost of their pool.

    >>> packing = spmilp.pack("buffers.csv", ["sram=256K", "flash=2M,cost=4,align=64"])
    >>> packing.status, packing.cost, packing.by_name

    Parameters
    ----------
    buffers, pools
        A CSV file as of ``spmilp pack``, or :class:`spmilp.packing.Buffer` objects; and
        :class:`spmilp.packing.Pool` objects, or texts as of ``--pool``.
    minimise
        Whether, at the least cost, the sum of the heights is minimised.
    time_limit, node_limit, seed
        Seconds or a text such as ``"5m"``; nodes of the search; the same seed and limit in nodes
        give the same answer when no time limit strikes.

    Raises a ``ValueError`` if a pool, a name or a limit is malformed, and a ``SpmilpError`` if the
    file cannot be read. What does not fit is said in the answer.
    """
    seconds = quantities.duration(time_limit)
    problem = PoolProblem(
        buffers=read_table(buffers).buffers if isinstance(buffers, Path | str) else tuple(buffers),
        pools=tuple(pool_of(pool) if isinstance(pool, str) else pool for pool in pools),
    )
    options = PackingOptions(
        time_limit=None if math.isinf(seconds) else seconds, node_limit=node_limit, seed=seed
    )
    return pack_pools(problem, options, heights=minimise)
