"""A plan from the solution of a whole order: the same transfers, each as early as it can be."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Decisions, Fill, TaskRun
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.solvers.milp.positions.variables import Flow, PositionVariables
from spmilp.solvers.milp.program import Linear
from spmilp.units import Cycles, MemoryIdx, SliceIdx, TaskIdx


class Move(NamedTuple):
    """A transfer of a solution: under way from one interval to another.

    ``stays`` is whether something remains inside; stores come first in an interval.
    """

    first: int
    last: int
    stays: bool
    slice: SliceIdx
    flow: str


class _Timed(NamedTuple):
    start: Cycles
    end: Cycles
    last: int
    option: TransferOption


def decisions_of(variables: PositionVariables, values: Sequence[float]) -> Decisions | None:
    """Return decisions with exact times for a solution; ``None`` if they are not of its kind.

    Transfers begin in the interval in which the solution lets them begin, one after the other as
    links and channels allow; a task runs as soon as the one before it, and all transfers that the
    solution ends before it, have ended. Whether there is room at every cycle shows when addresses
    are looked for.
    """
    return _Timing(variables, values).decisions()


class _Timing:
    def __init__(self, variables: PositionVariables, values: Sequence[float]) -> None:
        self._vars = variables
        self._tables = variables.tables
        self._values = {index: round(value) for index, value in enumerate(values)}
        self._timed: list[_Timed] = []
        self._starts: dict[TaskIdx, Cycles] = {}
        self._fills: dict[CandidateResidency, Fill] = {}
        self._held: dict[SliceIdx, list[tuple[Cycles, CandidateResidency]]] = defaultdict(list)

    def decisions(self) -> Decisions | None:
        """Return the decisions."""
        self._what_is_there_at_first()
        if not self._run_all():
            return None
        problem, pool = self._tables.problem, self._tables.base.pools[0].index
        served = dict(self._served())
        outputs = tuple(self._outputs())
        if None in served.values() or None in outputs:
            return None
        return Decisions(
            runs=tuple(
                TaskRun(
                    pool=pool,
                    start=self._starts[task.index],
                    end=self._starts[task.index] + self._tables.cycles[task.index],
                )
                for task in problem.tasks
            ),
            fills=self._fills,
            served={key: one for key, one in served.items() if one is not None},
            outputs=tuple(one for one in outputs if one is not None),
            in_place=tuple(self._in_place(served)),
        )

    def _is(self, variable: Linear) -> bool:
        return variable.value(self._values) > 0

    def _what_is_there_at_first(self) -> None:
        for buffer in self._tables.problem.buffers:
            if buffer.starts_in is not None:
                self._fill(buffer.index, buffer.starts_in, 0, Fill(start=0))

    def _fill(self, slice_: SliceIdx, memory: MemoryIdx, valid: Cycles, fill: Fill) -> None:
        number = 0
        if fill.source is not None:
            number = 1 + sum(key.memory == memory for _, key in self._held[slice_])
        key = CandidateResidency(slice_, memory, number)
        self._fills[key] = fill if fill.source is None else replace(fill, root=key)
        self._held[slice_].append((valid, key))

    def _run_all(self) -> bool:
        """Go through the intervals in turn; say whether every transfer found a source."""
        moves, now = sorted(self._moves()), 0
        for interval in range(self._vars.last + 1):
            for move in moves:
                if move.first == interval and not self._start(move, now):
                    return False
            task = self._vars.order[min(interval, self._vars.last - 1) // 2]
            if interval % 2:
                now += self._tables.cycles[task]
                continue
            now = max([now, *(timed.end for timed in self._timed if timed.last <= interval)])
            if interval < self._vars.last:
                self._begin(task, now)
        return True

    def _begin(self, task: TaskIdx, now: Cycles) -> None:
        self._starts[task] = now
        for buffer in self._tables.problem.tasks[task].writes:
            end = now + self._tables.cycles[task]
            self._fill(buffer, self._tables.memory, end, Fill(start=now))

    def _moves(self) -> Iterator[Move]:
        variables = self._vars
        for flows in (variables.loads, variables.copies, variables.stores):
            for flow in flows.values():
                yield from self._moves_of(flow)

    def _moves_of(self, flow: Flow) -> Iterator[Move]:
        for interval, ends in flow.ends.items():
            if not self._is(ends):
                continue
            first = interval
            while first - 1 in flow.flies and self._is(flow.flies[first - 1]):
                first -= 1
            yield Move(first, interval, flow.name != "store", flow.slice, flow.name)

    def _start(self, move: Move, ready: Cycles) -> bool:
        """Let a transfer start as early as it can; say whether there is a source for it."""
        found = self._source(move)
        if found is None:
            return False
        valid, source, option = found
        start = self._earliest(option, max(ready, valid))
        self._timed.append(_Timed(start, start + option.cycles, move.last, option))
        fill = Fill(start=start, source=source, engine=option.engine)
        self._fill(move.slice, option.destination, start + option.cycles, fill)
        return True

    def _source(self, move: Move) -> tuple[Cycles, CandidateResidency, TransferOption] | None:
        """Return from when on, out of what and how something can be moved; the quickest way."""
        tables = self._tables
        here = tables.memory
        found = []
        for holder in tables.base.holders(move.slice):
            for valid, key in self._held[holder]:
                if (key.memory == here) == (move.flow == "load"):
                    continue
                for memory in self._destinations(move):
                    out_of = tables.base.transfers.out_of(holder, move.slice, key.memory, memory)
                    found += [(option.cycles, valid, key, option) for option in out_of]
        if not found:
            return None
        _, valid, key, option = min(found, key=lambda one: (one[0], -one[1], one[2]))
        return valid, key, option

    def _destinations(self, move: Move) -> list[MemoryIdx]:
        here = self._tables.memory
        if move.flow != "store":
            return [here]
        ends = self._tables.problem.buffers[self._tables.buffer(move.slice)].ends_in
        if move.slice in self._tables.stored and ends is not None:
            return [ends]
        memories = self._tables.problem.machine.memories
        fits = self._tables.base.fits
        return [m.index for m in memories if m.index != here and fits(move.slice, m.index)]

    def _earliest(self, option: TransferOption, ready: Cycles) -> Cycles:
        """Return the first cycle from which links and channels are free for long enough."""
        for start in sorted({ready, *(one.end for one in self._timed if one.end > ready)}):
            events = [one.start for one in self._timed if start < one.start < start + option.cycles]
            if all(self._is_free(option, at) for at in (start, *events)):
                return start
        return max((one.end for one in self._timed), default=ready)

    def _is_free(self, option: TransferOption, at: Cycles) -> bool:
        machine = self._tables.problem.machine
        under_way = [one.option for one in self._timed if one.start <= at < one.end]
        channels = sum(other.engine == option.engine for other in under_way)
        if channels >= machine.engines[option.engine].channels:
            return False
        for link in option.links:
            held = sum((o.rate for o in under_way if link in o.links), Fraction(0))
            if held + option.rate > machine.links[link].rate:
                return False
        return True

    def _served(self) -> Iterator[tuple[tuple[TaskIdx, int], CandidateResidency | None]]:
        for task in self._tables.problem.tasks:
            for position, read in enumerate(task.reads):
                yield (task.index, position), self._server(task.index, read)

    def _server(self, task: TaskIdx, read: SliceIdx) -> CandidateResidency | None:
        """Return what the solution says to hold an operand: the last one filled before the task."""
        k = self._vars.order.index(task)
        for holder in self._tables.base.holders(read):
            inside = self._vars.inside.get(holder, {})
            if not all(j in inside and self._is(inside[j]) for j in (2 * k, 2 * k + 1)):
                continue
            able = [
                (valid, key)
                for valid, key in self._held[holder]
                if key.memory == self._tables.memory and valid <= self._starts[task]
            ]
            if able:
                return max(able)[1]
        return None

    def _outputs(self) -> Iterator[CandidateResidency | None]:
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in is not None:
                there = [k for _, k in self._held[buffer.index] if k.memory == buffer.ends_in]
                yield there[-1] if there else None

    def _in_place(
        self, served: dict[tuple[TaskIdx, int], CandidateResidency | None]
    ) -> Iterator[tuple[TaskIdx, CandidateResidency, CandidateResidency]]:
        for (k, read, written), pair in self._vars.in_place.items():
            task = self._vars.order[k]
            position = self._tables.problem.tasks[task].reads.index(read)
            old = served[task, position]
            if self._is(pair) and old is not None and old.slice == read:
                yield task, old, CandidateResidency(written, self._tables.memory, 0)
