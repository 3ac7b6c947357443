"""States: what an inference of a stream leaves for the next one, and where."""

from spmilp.plan.memory import home_of
from spmilp.plan.plan import Plan, Residency, Stream
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, ResidencyIdx


def left_by_others(
    problem: Problem, plan: Plan, stream: Stream
) -> dict[ResidencyIdx, ResidencyIdx | None]:
    """Return for each residency of a state what it is of the inference before, ``None`` if nothing.

    It is there from before the first inference on, whose own it is; in all others it is the
    residency of the output, as a whole, that lies at its place, or at its addresses an inference
    before.
    """
    states, found = problem.states(), dict[ResidencyIdx, ResidencyIdx | None]()
    wholes: dict[tuple[int, int, tuple[Bytes, ...] | None], ResidencyIdx] = {}
    for each in plan.residencies:
        if each.slice is not None and each.start >= stream.begins:
            at = addresses_of(each) if home_of(problem, each) is None else None
            wholes.setdefault((each.slice, each.memory, at), each.index)
    for each in plan.residencies:
        if each.slice is None or (buffer := problem.slices[each.slice].buffer) not in states:
            continue
        at, is_whole, is_at_place = None, True, home_of(problem, each) is not None
        if each.start >= (1 if is_at_place else stream.begins):
            continue
        if not is_at_place:
            first, *more = addresses_of(each)
            at, is_whole = (*more, first), each.slice == buffer
        found[each.index] = wholes.get((states[buffer], each.memory, at)) if is_whole else None
    return found


def addresses_of(each: Residency) -> tuple[Bytes, ...]:
    """Return the offsets of a residency in the inferences of a round."""
    return each.offset, *each.instances
