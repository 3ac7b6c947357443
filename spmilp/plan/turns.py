"""One period of a stream, as each is once the first inferences are over."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from spmilp.plan.memory import home_of
from spmilp.plan.plan import Plan, Residency, Stream
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, MemoryIdx


class Turn(NamedTuple):
    """Cycles ``[start, end)`` of something, from the begin of a period on.

    It is of the inference that began so many periods ``behind``. What goes on over the ends of the
    period starts before 0, or ends after the period, and has a turn for each period in which it is.
    """

    start: Cycles
    end: Cycles
    behind: int


def turns(stream: Stream, start: Cycles, end: Cycles) -> Iterator[Turn]:
    """Yield the turns of what an inference does in ``[start, end)``; the prologue has none."""
    first, last = start - stream.begins, end - stream.begins
    for behind in range(first // stream.period, -(-last // stream.period)) if first >= 0 else ():
        yield Turn(first - behind * stream.period, last - behind * stream.period, behind)


def permanent_bytes(problem: Problem, plan: Plan) -> dict[MemoryIdx, Bytes]:
    """Return the bytes that a stream holds for ever in each memory in which it does."""
    begins, found = 0 if plan.stream is None else plan.stream.begins, Counter[MemoryIdx]()
    for each in plan.residencies:
        if each.start < begins < each.end and home_of(problem, each) is None:
            found[each.memory] += each.bytes
    return found


def residencies_of_period(plan: Plan) -> list[tuple[Residency, int]]:
    """Return what lies where in a period, each with how many periods behind its inference began.

    It is a period in which all first instances begin; of a plan for one inference, the whole of it.
    """
    stream = plan.stream
    if stream is None:
        return [(each, 0) for each in plan.residencies]
    found = list[tuple[Residency, int]]()
    for each in plan.residencies:
        if each.start < stream.begins:
            if each.end > stream.begins:
                found.append((replace(each, start=0, end=stream.period), 0))
            continue
        offsets = (each.offset, *each.instances)
        for turn in turns(stream, each.start, each.end):
            start, end = max(0, turn.start), min(stream.period, turn.end)
            offset = offsets[-turn.behind % len(offsets)]
            found.append((replace(each, start=start, end=end, offset=offset), turn.behind))
    return found
