"""Tasks, edges and loads as flat arrays, for the kernels of cuts.

Tasks are numbered such that each comes after all that precede it; for tails, time is reversed.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]


class Edges(NamedTuple):
    """The edges to each task from those before it: ``first[t]`` to ``first[t + 1]``.

    Parameters
    ----------
    earlier
        The task that each begins at.
    near, away
        Cycles between the two.
    use
        Bytes that what the later one reads of the earlier one's results holds on the links into its
        memory if it comes from another one; 0 if it need not come.
    """

    first: Ints
    earlier: Ints
    near: Ints
    away: Ints
    use: Ints


class Tasks(NamedTuple):
    """Of each task.

    Parameters
    ----------
    alone
        Cycles before its start for what it needs by itself.
    cycles
        Its own, at least.
    sharing
        The most cores that work in a memory in which it can run.
    use
        Bytes that what comes to it from DRAM holds on the links into its memory.
    rate, over
        Numerator and denominator of the rate of these links.
    """

    alone: Ints
    cycles: Ints
    sharing: Ints
    use: Ints
    rate: Ints
    over: Ints


class Ports(NamedTuple):
    """What tasks load from DRAMs: the jobs of port ``p`` and task ``t`` begin at ``first[p, t]``.

    Parameters
    ----------
    buffer
        Of each job; jobs of one buffer are the same bytes.
    use
        For each buffer, what it holds on the port's links.
    rate, over
        Numerator and denominator of the rate of each port.
    """

    first: Ints
    buffer: Ints
    use: Ints
    rate: Ints
    over: Ints
