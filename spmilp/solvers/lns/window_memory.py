"""What a window's memories have to hold, as part of its CP-SAT model."""

from ortools.sat.python import cp_model

from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.lns.kept_order import Claim, handovers
from spmilp.solvers.lns.window import Stay
from spmilp.solvers.lns.window_model import Time, WindowModel
from spmilp.units import Bytes


def memories_suffice(model: WindowModel) -> None:
    """Let the bytes in use fit at every cycle, wherever they lie."""
    window, draft = model.window, model.window.draft
    # As a dictionary, for the order in which they are met.
    touched = {
        int(draft.memory[held]): None
        for activity in window.near
        for rows in (draft.reads, draft.fills)
        for held in window.row(rows, activity)
    }
    for memory in touched:
        capacity = int(window.ground.usable[memory])
        if capacity == NEVER:
            continue
        stays = window.stays(memory)
        if sum(stay.bytes for stay in stays) > capacity:
            _memory_suffices(model, stays, capacity)


def _memory_suffices(model: WindowModel, stays: list[Stay], capacity: Bytes) -> None:
    window = model.window
    is_free = [any(window.is_free[one] for one in window.touching(stay.held)) for stay in stays]
    kept = [stay for stay, free in zip(stays, is_free, strict=True) if not free]
    _order_is_kept(model, kept, capacity)
    if any(is_free):
        lives = [_life(model, stay) for stay in stays]
        model.cp.add_cumulative(lives, [stay.bytes for stay in stays], capacity)


def _order_is_kept(model: WindowModel, stays: list[Stay], capacity: Bytes) -> None:
    """Let those that nothing free touches hand on their bytes in the old order."""
    window = model.window
    claims = [Claim(stay.begin, stay.end, stay.bytes) for stay in stays]
    for first, second in handovers(claims, capacity):
        old, new = stays[first].held, stays[second].held
        for other in window.touching(old):
            model.must_follow(other, window.filler[new], by_end=window.parent[new] >= 0)


def _life(model: WindowModel, stay: Stay) -> cp_model.IntervalVar:
    """Return when a residency is there; what takes over bytes, from the end of its writer."""
    window, cp = model.window, model.cp
    filler = window.filler[stay.held]
    begin: Time = 0
    if filler >= 0:
        takes_over = window.parent[stay.held] >= 0
        begin = model.finish(filler) if takes_over else model.begin(filler)
    if isinstance(begin, int):
        begin = max(begin, 0)
    until = _until(model, stay)
    if isinstance(begin, int) and isinstance(until, int):
        return cp.new_fixed_size_interval_var(begin, until - begin, "")
    length = cp.new_int_var(0, model.end, "")
    model.hint(length, stay.end - stay.begin)
    return cp.new_interval_var(begin, length, until, "")


def _until(model: WindowModel, stay: Stay) -> Time:
    """Return the end of a residency, or of the window if that comes first."""
    window, cp, end = model.window, model.cp, model.end
    touching = window.touching(stay.held)
    inside = [one for one in touching if window.is_inside[one]]
    before = [one for one in touching if window.is_before[one]]
    behind = [one for one in touching if not (window.is_inside[one] or window.is_before[one])]
    earliest = max(map(window.old_end, before), default=0) - window.start
    latest = max(map(window.old_end, behind), default=0) - window.start
    if window.draft.lasting[stay.held] or latest >= end:
        return end - model.saved
    if not inside and not behind:
        return min(earliest, end)
    if not inside and not before:
        return latest - model.saved
    until = cp.new_int_var(max(0, earliest), end, "")
    model.hint(until, stay.end - window.start)
    for one in inside:
        cp.add(until >= model.finish(one))
    if behind:
        cp.add(until >= latest - model.saved)
    return until
