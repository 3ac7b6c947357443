"""Rule 12: a stream of inferences; what each does in a period, the other rules ask as well."""

from collections.abc import Iterator
from itertools import chain

from spmilp.checker.rules.case import Case, Finding, is_filled
from spmilp.plan.plan import Residency, Stream
from spmilp.units import Cycles, ResidencyIdx, TensorIdx


def prologue(case: Case) -> Iterator[Finding]:
    """What happens once is over when the first inference begins, of constants or states alone."""
    begins, buffers = case.begins, case.problem.buffers
    for placement in case.plan.placements if case.plan.stream is not None else ():
        if placement.start < begins:
            who = case.task(placement.task)
            yield (who,), f"{who} starts at cycle {placement.start} < {begins}, in the prologue"
    for move in case.plan.transfers if case.plan.stream is not None else ():
        if move.start >= begins:
            continue
        who, buffer = f"transfer {move.index}", case.problem.slices[move.slice].buffer
        if move.end > begins:
            late = f"arrives at cycle {move.end} > {begins}, when the first inference begins"
            yield (who,), f"{who} of the prologue {late}"
        if not buffers[buffer].is_constant and buffer not in case.problem.states():
            what = f"{case.buffer(buffer)}, of kind {buffers[buffer].kind}, expected weight"
            yield (who,), f"{who} of the prologue moves {what}"


def permanent(case: Case) -> Iterator[Finding]:
    """What is there before the first inference and in it is constant, and stays for ever."""
    begins, end = case.begins, case.makespan
    for each, home in _residencies(case):
        if home is not None or not each.start < begins < each.end or each.index in case.left:
            continue
        who = case.residency(each.index)
        buffer = None if each.slice is None else case.problem.slices[each.slice].buffer
        if buffer is None or not case.problem.buffers[buffer].is_constant:
            yield (who,), f"{who} lasts from the prologue on, but is no constant"
        if each.end < end:
            yield (who,), f"{who} is permanent, but ends at cycle {each.end} < {end}, the last one"


def instances(case: Case) -> Iterator[Finding]:
    """A residency has an instance for each period in which it goes on, and else none."""
    stream = case.plan.stream
    for each, home in _residencies(case):
        many, who = 1 + len(each.instances), case.residency(each.index)
        if home is not None or each.start < case.begins:
            if many > 1 and (home is not None or each.index not in case.left):
                yield (
                    (who,),
                    f"{who} has {many} instances, expected 1: it is there for ever, or once",
                )
        elif not is_filled(each) and each.slice is not None:
            yield (who,), f"{who} is filled by nothing: data of a stream comes from DRAM"
        elif stream is not None and each.end - each.start > many * stream.period:
            lasts = f"{each.end - each.start} cycles > {many} * {stream.period}"
            yield (who,), f"{who} lasts {lasts}, its instances by the period"


def handed_over(case: Case) -> Iterator[Finding]:
    """Each tensor has instances enough to be filled, or taken, while others are in use.

    What an inference leaves is neither: it is read until the next one has read it.
    """
    stream, last, first = case.plan.stream, dict[TensorIdx, Cycles](), dict[TensorIdx, Cycles]()
    if stream is None:
        return
    for use in chain(case.task_uses, case.transfer_uses):
        home = case.home[use.residency]
        if home is not None:
            last[home] = max(last.get(home, 0), use.end - case.begins)
    for each, home in _residencies(case):
        if home is not None and is_filled(each):
            first[home] = min(first.get(home, each.start), each.start - case.begins)
    constants = {
        one.place.tensor
        for one in case.problem.buffers
        if one.place is not None and one.is_constant
    }
    states = {tensor.state for tensor in case.problem.tensors}
    for tensor in case.problem.tensors:
        many, index = 1 + len(_instances(stream, tensor.index)), tensor.index
        who, room = case.tensor(index), (many - 1) * stream.period
        if tensor.state is not None:
            left = _addresses(case, stream, tensor.state)
            if (own := _addresses(case, stream, index)) != (*left[-1:], *left[:-1]):
                where = f"lies at {own}, but inferences before leave it at {left}"
                yield (who,), f"{who} {where}, expected the same a turn later"
            until = last.get(index, 0)
            written = first.get(tensor.state, until)
            if until > written + room:
                begins = f"cycle {written} + {room}, when it is written for a later one"
                yield (who,), f"{who} is read until cycle {until} of an inference > {begins}"
        elif index in states:
            until, written = last.get(index, 0), first.get(index, 0)
            if until > written + many * stream.period:
                begins = f"cycle {written} + {many} * {stream.period}"
                yield (who,), f"{who} is read until cycle {until} of an inference > {begins}"
        elif index in constants:
            if many > 1:
                yield (who,), f"{who} has {many} instances, expected 1 of a constant"
        elif index in first:
            until = case.makespan - case.begins + stream.period
            if until - first[index] > many * stream.period:
                needs = f"[{first[index]}, {until}) of an inference > {many} * {stream.period}"
                yield (who,), f"{who} is written and taken in cycles {needs}"
        elif last.get(index, 0) > room:
            reads = f"until cycle {last[index]} of an inference > {room}"
            yield (who,), f"{who} is read {reads}, when it is filled for a later one"


def state(case: Case) -> Iterator[Finding]:
    """What is read of a state is there: the inference before has left it, and it lies there."""
    stream, used = case.plan.stream, set[ResidencyIdx]()
    if stream is None:
        return
    for use in chain(case.task_uses, case.transfer_uses):
        if use.residency not in case.left or use.start < case.begins:
            continue
        used.add(use.residency)
        left = case.left[use.residency]
        start = use.start + stream.period
        if left is not None and case.valid_from[left] > start:
            who, what = case.user(use), case.residency(left)
            late = f"cycle {case.valid_from[left]} > {start}, when that of the next inference does"
            yield (who, what), f"{what} is valid from {late}: {who} reads a state too early"
    for index, left in case.left.items():
        each, who, home = case.plan.residencies[index], case.residency(index), case.home[index]
        if index not in used and (home is not None or each.end <= case.begins):
            continue
        if left is None:
            yield (who,), f"{who} is of a state, but no inference leaves anything there"
            continue
        other, what = case.plan.residencies[left], case.residency(left)
        until, begins = each.end + stream.period, case.begins + stream.period
        if home is None and other.end < until:
            ends = f"{what} ends at cycle {other.end} < {until}"
            yield (what, who), f"{ends}, until when it is {who} of the next inference"
        if home is None and other.start > begins:
            late = f"{what} starts at cycle {other.start} > {begins}"
            yield (what, who), f"{late}, a period after the first inference has begun"


def _residencies(case: Case) -> Iterator[tuple[Residency, TensorIdx | None]]:
    if case.plan.stream is not None:
        yield from zip(case.plan.residencies, case.home, strict=True)


def _addresses(case: Case, stream: Stream, tensor: TensorIdx) -> tuple[int, ...]:
    return case.plan.tensors[tensor], *_instances(stream, tensor)


def _instances(stream: Stream, tensor: TensorIdx) -> tuple[int, ...]:
    return stream.instances[tensor] if stream.instances else ()
