"""Rule 12: a stream of inferences; what each does in a period, the other rules ask as well."""

from collections.abc import Iterator
from itertools import chain

from spmilp.checker.rules.case import Case, Finding, is_filled
from spmilp.plan.plan import Residency, Stream
from spmilp.units import Cycles, TensorIdx


def prologue(case: Case) -> Iterator[Finding]:
    """What happens once is over when the first inference begins, and is about constants alone."""
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
        if not buffers[buffer].is_constant:
            what = f"{case.buffer(buffer)}, of kind {buffers[buffer].kind}, expected weight"
            yield (who,), f"{who} of the prologue moves {what}"


def permanent(case: Case) -> Iterator[Finding]:
    """What is there before the first inference and in it is constant, and stays for ever."""
    begins, end = case.begins, case.makespan
    for each, home in _residencies(case):
        if home is not None or not each.start < begins < each.end:
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
            if many > 1:
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
    """Each tensor has instances enough to be filled, or taken, while others are in use."""
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
    for tensor in case.problem.tensors:
        many, index = 1 + len(_instances(stream, tensor.index)), tensor.index
        who, room = case.tensor(index), (many - 1) * stream.period
        if index in constants:
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


def _residencies(case: Case) -> Iterator[tuple[Residency, TensorIdx | None]]:
    if case.plan.stream is not None:
        yield from zip(case.plan.residencies, case.home, strict=True)


def _instances(stream: Stream, tensor: TensorIdx) -> tuple[int, ...]:
    return stream.instances[tensor] if stream.instances else ()
