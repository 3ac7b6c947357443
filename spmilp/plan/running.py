"""A stream as it runs: inferences in the instances of their tensors, and what the application does.

The application fills the inputs of an inference and takes its outputs: two more cores run that.
States are there at the start, and stay with the inferences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from spmilp.plan.memory import home_of, layout_in_memory
from spmilp.plan.plan import Placement, Plan, Residency, Stream
from spmilp.plan.unrolled import Unrolling
from spmilp.problem.problem import Problem, Task
from spmilp.problem.strides import layout_at_place
from spmilp.units import Bytes, Cycles, ResidencyIdx, SliceIdx, TaskIdx, TransferIdx


def inferences_at_once(plan: Plan, stream: Stream) -> int:
    """Return how many inferences have begun and not ended at a time: the latency in periods."""
    return -(-plan.claim.makespan // stream.period)


def rounds_of(plan: Plan, stream: Stream) -> int:
    """Return after how many inferences all residencies and tensors have the same addresses."""
    more = (*(each.instances for each in plan.residencies), *stream.instances)
    return lcm(*(1 + len(each) for each in more))


def in_round(problem: Problem, plan: Plan, stream: Stream, inference: int) -> Plan:
    """Return a stream's plan with the addresses that an inference uses, and no others."""

    def of(first: Bytes, more: Sequence[Bytes]) -> Bytes:
        return (first, *more)[inference % (1 + len(more))]

    none: tuple[Sequence[Bytes], ...] = ((),) * len(plan.tensors)
    tensors = tuple(map(of, plan.tensors, stream.instances or none))
    found = replace(plan, tensors=tensors)

    def stay(each: Residency) -> Residency:
        offset = of(each.offset, each.instances)
        if each.slice is not None and home_of(problem, each) is not None:
            offset = layout_in_memory(problem, found, each.slice, each.index).offset
        return replace(each, offset=offset, instances=())

    return replace(found, residencies=tuple(map(stay, plan.residencies)))


def enough_to_replay(plan: Plan, stream: Stream) -> int:
    """Return how many inferences, at least 4, show each that meets others, at all addresses."""
    return max(4, rounds_of(plan, stream) + max(2, inferences_at_once(plan, stream)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Running:
    """Inferences of a stream as an ordinary problem and plan.

    It is of the ``given`` problem. ``tasks`` and ``transfers`` have of each row the inference, and
    its number in the stream. Of the application's tasks, one that hands in and one that takes for
    each inference, behind all others, the second numbers are ``hand_in`` and ``take``.
    """

    given: Problem
    problem: Problem
    plan: Plan
    tasks: tuple[tuple[int, TaskIdx], ...]
    transfers: tuple[tuple[int, TransferIdx], ...]
    hand_in: TaskIdx
    take: TaskIdx


def running(problem: Problem, plan: Plan, inferences: int) -> Running:
    """Return so many inferences of a stream, the first one a period behind the prologue.

    Inputs are filled in the whole period before an inference begins, and outputs are taken in that
    after it has ended: instances allow no more. Raises a ``ValueError`` for a plan that is no
    stream.
    """
    if plan.stream is None:
        raise ValueError("the plan is of one inference: nothing runs again and again")
    return _Running(problem, plan, plan.stream, inferences).result()


class _Running:
    def __init__(self, problem: Problem, plan: Plan, stream: Stream, inferences: int) -> None:
        self._given, self._stream, self._inferences = problem, stream, inferences
        self._plan = plan
        self._rows = Unrolling(problem, plan, stream, inferences, runs=True)
        self._problem, self._found = self._rows.result()
        self._tasks, self._runs = list(self._problem.tasks), list(self._found.placements)
        self._buffers, self._stays = list(self._problem.buffers), list(self._found.residencies)
        self._end = max((each.end for each in self._stays), default=1)

    def result(self) -> Running:
        """Return the problem and the plan, with the tasks of the application."""
        machine, stream, inferences = self._problem.machine, self._stream, range(self._inferences)
        core, latency = len(machine.cores), self._plan.claim.makespan
        tasks = [(k, row.index) for k, _, row in self._rows.tasks.each(self._given.tasks)]
        transfers = [
            (k, row.index) for k, _, row in self._rows.transfers.each(self._plan.transfers)
        ]
        for inference in inferences:
            begins = stream.begins + inference * stream.period
            self._add(f"inputs of inference {inference}", core, begins, {}, self._filled(inference))
            tasks.append((inference, len(self._given.tasks)))
        for inference in inferences:
            ends = stream.begins + self._rows.later(inference) + latency
            self._add(
                f"outputs of inference {inference}", core + 1, ends, self._taken(inference), {}
            )
            tasks.append((inference, len(self._given.tasks) + 1))
        two = (
            replace(
                machine.cores[0], index=core + which, name=f"application, {what}", position=None
            )
            for which, what in enumerate(("inputs", "outputs"))
        )
        made = replace(
            self._problem,
            machine=replace(machine, cores=(*machine.cores, *two)),
            buffers=tuple(self._buffers),
            tasks=tuple(self._tasks),
        )
        found = replace(self._found, placements=tuple(self._runs), residencies=tuple(self._stays))
        hand_in = len(self._given.tasks)
        return Running(
            given=self._given,
            problem=made,
            plan=found,
            tasks=tuple(tasks),
            transfers=tuple(transfers),
            hand_in=hand_in,
            take=hand_in + 1,
        )

    def _add(
        self,
        name: str,
        core: int,
        start: Cycles,
        reads: Mapping[SliceIdx, ResidencyIdx],
        writes: Mapping[SliceIdx, ResidencyIdx],
    ) -> None:
        """Add a task of the application, which takes a period."""
        number, cycles = len(self._tasks), (1,) * len(self._problem.machine.kinds)
        task = Task(
            index=number, name=name, cycles=cycles, reads=tuple(reads), writes=tuple(writes)
        )
        run = Placement(
            task=number,
            core=core,
            start=start,
            end=start + self._stream.period,
            reads=tuple(reads.values()),
            writes=tuple(writes.values()),
        )
        self._tasks.append(task)
        self._runs.append(run)

    def _filled(self, inference: int) -> dict[SliceIdx, ResidencyIdx]:
        """Return the buffers of an inference's inputs, each in a new residency at its place."""
        found = {}
        for buffer in self._given.buffers:
            place = buffer.place
            if buffer.starts_in is None or buffer.is_constant or place is None:
                continue
            if buffer.index in self._given.states():
                continue
            number = self._rows.buffers.numbers[inference][buffer.index]
            self._buffers[number] = replace(self._buffers[number], starts_in=None)
            tensor = self._rows.tensors.numbers[inference][place.tensor]
            inside = layout_at_place(self._problem, number)
            found[number] = len(self._stays)
            stay = Residency(
                index=len(self._stays),
                slice=number,
                memory=buffer.starts_in,
                offset=self._found.tensors[tensor] + inside.offset,
                bytes=buffer.bytes,
                start=self._stream.begins + inference * self._stream.period,
                end=self._end,
                filled_by_task=len(self._tasks),
            )
            self._stays.append(stay)
        return found

    def _taken(self, inference: int) -> dict[SliceIdx, ResidencyIdx]:
        """Return what lies of the outputs of an inference at their places."""
        problem, found, stays = self._given, dict[SliceIdx, ResidencyIdx](), self._found.residencies
        outputs = {
            one.place.tensor for one in problem.buffers if one.place and one.ends_in is not None
        } - {tensor.state for tensor in problem.tensors}
        for each, number in zip(
            self._plan.residencies, self._rows.residencies.numbers[inference], strict=True
        ):
            slice_ = stays[number].slice
            is_given = each.filled_by_task is None and each.filled_by_transfer is None
            if slice_ is not None and not is_given and home_of(problem, each) in outputs:
                found[slice_] = number
        return found
