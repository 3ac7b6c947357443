"""Times for what has changed: all behind it waits until it is done."""

import numpy as np

from spmilp.solvers.kernels.records import Ints, numbers
from spmilp.solvers.lns.cores.moving import Moved
from spmilp.solvers.lns.draft import Draft


def stretched(before: Draft, moved: Moved, start: Ints) -> Ints:
    """Return start cycles of a moved draft, in which what has to be placed anew runs alone.

    At the cycle given for each, nothing begins any more until all has ended that runs; then comes
    the activity, and all that began at that cycle or later comes after it, as late as it came
    before. So whoever waits for another still begins when that has ended, and of the others only
    those hold something at the same time that did so before.

    Parameters
    ----------
    start
        Cycles of the draft before, to which those of ``moved.anew`` refer.
    """
    cycles = moved.draft.cycles
    stays = (cycles > 0) & (before.cycles > 0)
    stays[[act for _, _, act in moved.anew]] = False
    others = np.flatnonzero(stays)
    others = others[np.argsort(start[others], kind="stable")]
    begins = start[others]
    latest_end = np.maximum.accumulate((start + cycles)[others])
    found = start.copy()
    shift, cut, at, shifts = 0, -1, [], [0]
    for cycle, _, act in moved.anew:
        if cycle != cut:
            cut = cycle
            started = int(np.searchsorted(begins, cycle))
            running = int(latest_end[started - 1]) if started else 0
            shift += max(0, running - cycle)
            at.append(cycle)
            shifts.append(shift)
        found[act] = cycle + shift
        shift += int(cycles[act])
        shifts[-1] = shift
    found[others] += numbers(shifts)[np.searchsorted(numbers(at), begins, side="right")]
    return found
