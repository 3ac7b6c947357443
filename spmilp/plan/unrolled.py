"""A stream of inferences as one plan: what it means that a stream is valid."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, starmap
from math import lcm
from typing import TypeVar

from spmilp.machine.machine import Machine, MemoryKind
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.memory import home_of, layout_in_memory
from spmilp.plan.plan import Placement, Plan, Residency, Stream, Transfer
from spmilp.plan.states import left_by_others
from spmilp.problem.problem import Buffer, DramTensor, Problem, Slice, Task, whole_slice
from spmilp.units import Bytes, Cycles, SliceIdx, TensorIdx, align_up

T = TypeVar("T")


def enough_inferences(plan: Plan) -> int:
    """Return after how many inferences a stream does nothing new: as many as meet, and a round."""
    if plan.stream is None:
        return 1
    rounds = lcm(*(1 + len(each.instances) for each in plan.residencies))
    return -(-plan.claim.makespan // plan.stream.period) + rounds


def unrolled(problem: Problem, plan: Plan, inferences: int) -> tuple[Problem, Plan]:
    """Return so many inferences of a stream behind its prologue, as a problem and a plan of it.

    Constants are there once, all else for each inference; of a state each but the first has what
    the one before has written. Each has DRAM tensors of its own, at new
    addresses: which of them may share one is a rule about streams alone. So DRAMs have no limit
    here, and pins are left out. Raises a ``ValueError`` for a plan that is no stream.
    """
    if plan.stream is None:
        raise ValueError("the plan is of one inference: it has no stream to unroll")
    return Unrolling(problem, plan, plan.stream, inferences).result()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table: how many inferences have one of their own, and its number in each.

    The others have the rows of those again, in turn.
    """

    many: Sequence[int]
    numbers: Sequence[list[int]]

    @classmethod
    def of(cls, many: Iterable[int], inferences: int, first: int = 0) -> "Rows":
        times, numbers = list(many), list[list[int]]()
        for inference in range(inferences):
            mine = []
            for row, rounds in enumerate(times):
                old = inference >= rounds
                mine.append(numbers[inference - rounds][row] if old else first)
                first += not old
            numbers.append(mine)
        return cls(times, numbers)

    def take_over(self, left: Mapping[int, int | None]) -> None:
        """Let some rows be others of the inference before; in the first one they are their own."""
        known = {row: other for row, other in left.items() if other is not None}
        for before, mine in pairwise(self.numbers):
            for row, other in known.items():
                mine[row] = before[other]

    def each(self, rows: Sequence[T]) -> Iterator[tuple[int, int, T]]:
        """Yield the inference, the number and the original of each row."""
        for inference, mine in enumerate(self.numbers):
            for many, number, row in zip(self.many, mine, rows, strict=True):
                if inference < many:
                    yield inference, number, row


class Unrolling:
    """A stream's inferences, and the numbers that their rows have.

    Where it ``runs``, tensors are at their instances, and all is a period later.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        stream: Stream,
        inferences: int,
        *,
        runs: bool = False,
    ) -> None:
        self._problem, self._plan, self._stream, self._runs = problem, plan, stream, runs
        buffers, begins = problem.buffers, stream.begins

        def rows(is_once: Iterable[bool], first: int = 0) -> Rows:
            return Rows.of((1 if once else inferences for once in is_once), inferences, first)

        constants = {b.place.tensor for b in buffers if b.place is not None and b.is_constant}
        is_constant, whole = [one.is_constant for one in buffers], len(buffers)
        tensors = [1 if t.index in constants else inferences for t in problem.tensors]
        if runs:
            tensors = [len(self._addresses(tensor.index)) for tensor in problem.tensors]
        self.tensors = Rows.of(tensors, inferences)
        states = problem.states()
        self._left = frozenset(states.values())
        self.buffers = rows(constant or n in states for n, constant in enumerate(is_constant))
        self.buffers.take_over(states)
        made = 1 + max((number for mine in self.buffers.numbers for number in mine), default=-1)
        self._parts = rows((is_constant[one.buffer] for one in problem.slices[whole:]), made)
        self.tasks = rows(False for _ in problem.tasks)
        self.transfers = rows(one.start < begins for one in plan.transfers)
        left = left_by_others(problem, plan, stream)
        self._begun = frozenset(left)
        self.residencies = rows(map(self._is_once, plan.residencies))
        self.residencies.take_over(left)
        self._last = stream.begins + plan.claim.makespan
        self._end = self._last + self.later(inferences - 1 + runs)

    def later(self, inference: int) -> Cycles:
        """Return by how many cycles an inference is later than its rows."""
        return (inference + self._runs) * self._stream.period

    def result(self) -> tuple[Problem, Plan]:
        """Return the problem and the plan."""
        problem, plan = self._problem, self._plan
        tensors = list(self._tensors_with_addresses())
        buffers = tuple(starmap(self._buffer, self.buffers.each(problem.buffers)))
        parts = starmap(self._part, self._parts.each(problem.slices[len(problem.buffers) :]))
        made = Problem(
            name=problem.name,
            machine=_without_limits(problem.machine),
            tensors=tuple(tensor for tensor, _ in tensors),
            buffers=buffers,
            slices=(*map(whole_slice, buffers), *parts),
            tasks=tuple(starmap(self._task, self.tasks.each(problem.tasks))),
        )
        addresses = tuple(address for _, address in tensors)
        placements = tuple(starmap(self._placement, self.tasks.each(plan.placements)))
        transfers = tuple(starmap(self._transfer, self.transfers.each(plan.transfers)))
        rows = self.residencies.each(plan.residencies)
        found = Plan(
            placements=placements,
            residencies=tuple(starmap(self._residency, rows)),
            transfers=transfers,
            tensors=addresses,
            claim=plan.claim,
            solver=plan.solver,
        )
        stays = tuple(self._at_its_place(made, found, one) for one in found.residencies)
        claim = claim_of(measure(made, placements, stays, transfers), 0, "none")
        return made, replace(found, residencies=stays, claim=claim)

    def _tensors_with_addresses(self) -> Iterator[tuple[DramTensor, Bytes]]:
        """Yield the tensors, those of further inferences behind all that lies in their memories."""
        machine = self._problem.machine
        unit = lcm(*(one.congruence for one in machine.engines), 64)
        top: dict[int, Bytes] = {}
        for one in self._plan.residencies:
            ends = max(one.offset, *one.instances, 0) + one.bytes
            top[one.memory] = max(top.get(one.memory, 0), ends)
        for tensor, address in zip(self._problem.tensors, self._plan.tensors, strict=True):
            top[tensor.memory] = max(top.get(tensor.memory, 0), address + tensor.bytes)
        for memory in machine.memories:
            ends = max((taken.end for taken in memory.reserved), default=0)
            top[memory.index] = max(top.get(memory.index, 0), ends)
        given = zip(self._problem.tensors, self._plan.tensors, strict=True)
        for inference, number, (tensor, address) in self.tensors.each(list(given)):
            addresses = self._addresses(tensor.index)
            instance = addresses[inference % len(addresses)]
            if self._runs:
                address = instance
            elif inference or tensor.state is not None:
                step = lcm(unit, machine.memories[tensor.memory].alignment)
                address = align_up(top[tensor.memory], step) + instance % step
                top[tensor.memory] = address + tensor.bytes
            yield replace(tensor, index=number, state=None), address

    def _addresses(self, tensor: TensorIdx) -> tuple[Bytes, ...]:
        """Return the addresses of all instances of a tensor."""
        more = self._stream.instances[tensor] if self._stream.instances else ()
        return self._plan.tensors[tensor], *more

    def _buffer(self, inference: int, number: int, buffer: Buffer) -> Buffer:
        place = buffer.place
        if place is not None:
            place = replace(place, tensor=self.tensors.numbers[inference][place.tensor])
        # On the chip an inference may leave a state for the next one.
        ends_in = None if buffer.index in self._left else buffer.ends_in
        return replace(buffer, index=number, place=place, ends_in=ends_in)

    def _part(self, inference: int, number: int, part: Slice) -> Slice:
        return replace(part, index=number, buffer=self.buffers.numbers[inference][part.buffer])

    def _slice(self, inference: int, slice_: SliceIdx) -> SliceIdx:
        whole = self.buffers.numbers[inference]
        if slice_ < len(whole):
            return whole[slice_]
        return self._parts.numbers[inference][slice_ - len(whole)]

    def _task(self, inference: int, number: int, task: Task) -> Task:
        written, read = self.buffers.numbers[inference], partial(self._slice, inference)
        return replace(
            task,
            index=number,
            name=f"{task.name} of inference {inference}",
            reads=tuple(map(read, task.reads)),
            writes=tuple(written[one] for one in task.writes),
            in_place=tuple((read(old), written[new]) for old, new in task.in_place),
            after=tuple(self.tasks.numbers[inference][one] for one in task.after),
        )

    def _placement(self, inference: int, number: int, run: Placement) -> Placement:
        later, at = self.later(inference), self.residencies.numbers[inference]
        return replace(
            run,
            task=number,
            start=run.start + later,
            end=run.end + later,
            reads=tuple(at[one] for one in run.reads),
            writes=tuple(at[one] for one in run.writes),
            scratch=None if run.scratch is None else at[run.scratch],
        )

    def _transfer(self, inference: int, number: int, move: Transfer) -> Transfer:
        is_once, at = move.start < self._stream.begins, self.residencies.numbers[inference]
        later = 0 if is_once else self.later(inference)
        return replace(
            move,
            index=number,
            slice=self._slice(inference, move.slice),
            source=at[move.source],
            destinations=tuple(at[one] for one in move.destinations),
            start=move.start + later,
            sent=move.sent + later,
            end=move.end + later,
        )

    def _residency(self, inference: int, number: int, each: Residency) -> Residency:
        is_once, offsets = self._is_once(each), (each.offset, *each.instances)
        begun = each.index in self._begun
        later = 0 if is_once else self.later(inference)
        task, move = each.filled_by_task, each.filled_by_transfer
        # What is in a tensor at first is there from cycle 0 on, and what lasts to the end lasts.
        at_place = home_of(self._problem, each) is not None
        is_there = task is None and move is None and at_place
        lasts = each.end >= self._last and (at_place or is_once) and not begun
        return replace(
            each,
            index=number,
            slice=None if each.slice is None else self._slice(inference, each.slice),
            offset=offsets[inference % len(offsets)],
            instances=(),
            start=0 if is_there else each.start + later,
            end=self._end if lasts else each.end + (self.later(0) if begun else later),
            filled_by_task=None if task is None else self.tasks.numbers[inference][task],
            filled_by_transfer=None if move is None else self.transfers.numbers[inference][move],
        )

    def _at_its_place(self, made: Problem, found: Plan, one: Residency) -> Residency:
        """Return a residency at the address of its tensor, if it lies in one."""
        if one.slice is None or home_of(made, one) is None:
            return one
        where = layout_in_memory(made, found, one.slice, one.index)
        return replace(one, offset=where.offset)

    def _is_once(self, each: Residency) -> bool:
        """Say whether a residency is of the prologue, or of a constant and for ever."""
        if each.slice is None:
            return each.start < self._stream.begins
        if each.index in self._begun:
            return True
        buffer = self._problem.buffers[self._problem.slices[each.slice].buffer]
        return buffer.is_constant and each.start < max(1, self._stream.begins)


def _without_limits(machine: Machine) -> Machine:
    return replace(
        machine,
        memories=tuple(
            replace(one, size=None) if one.kind is MemoryKind.DRAM else one
            for one in machine.memories
        ),
    )
