"""All states that plans of a problem can pass through, the cheapest first.

Costs never fall along a path, and the cycles of the tasks still to run never exceed those that
follow, so the first complete plan that comes up is one of the best (Hart, Nilsson, Raphael, "A
formal basis for the heuristic determination of minimum cost paths", IEEE Transactions on Systems
Science and Cybernetics 4(2), 1968).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count, product
from math import ceil
from typing import NamedTuple, TypeAlias

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Task
from spmilp.units import Bytes, Cycles, MemoryIdx, SliceIdx
from tests.oracle.rules import CoreGroup, Rules, Transfer

WAITING, DONE = -1, 0

Layout: TypeAlias = tuple[Bytes, ...]
"""An address for each tensor of a memory, then for each residency; -1 for one at its place."""


class Cost(NamedTuple):
    """Quantities that add up along a plan; named as in :class:`Quantity`."""

    makespan: Cycles = 0
    dram_traffic: Bytes = 0
    energy: int = 0

    def of(self, quantity: Quantity) -> int:
        """Return one of the quantities."""
        return int(getattr(self, quantity))


class Live(NamedTuple):
    """A residency of a state.

    Parameters
    ----------
    thing
        A slice; ``-1 - t`` for the scratch of task ``t``.
    residue
        Its address modulo the engines' congruences; -1 where it does not matter.
    valid_in, busy_for
        Cycles until it is filled, and until its last present user has ended (filling is a use).
    used
        Whether it has served something, as it must if a transfer fills it; else true.
    leaving
        Whether it ends with its present users and serves no others.
    name
        A number of its own, which is no part of the state.
    """

    thing: int
    residue: int
    valid_in: Cycles
    busy_for: Cycles
    used: bool
    leaving: bool
    name: int

    def may_go(self) -> bool:
        """Say whether it can end now: nothing uses it, and it has been of use."""
        return self.busy_for == 0 and self.used


class Contents(NamedTuple):
    """What lies in one memory, and every way in which it can, given all that lay there before."""

    lives: tuple[Live, ...] = ()
    layouts: frozenset[Layout] = frozenset([()])


class RunningTransfer(NamedTuple):
    """A transfer that is under way, with the cycles until each of its moments, 0 once past."""

    engine: int
    links: tuple[int, ...]
    rate: Fraction
    setup: Cycles
    sent: Cycles
    busy: Cycles
    left: Cycles


class State(NamedTuple):
    """Everything that decides what can follow, times relative to now.

    Parameters
    ----------
    tasks
        ``WAITING``, ``DONE`` or the cycles left of each task; and its group of cores.
    tensors
        The address of each tensor modulo the engines' congruences.
    able
        The engines whose transfers may start now; ``None`` for all, and tasks.
    """

    tasks: tuple[tuple[Cycles, int], ...]
    transfers: tuple[RunningTransfer, ...]
    memories: tuple[Contents, ...]
    tensors: tuple[int, ...]
    able: frozenset[int] | None = None

    def key(self) -> object:
        """Return what tells states apart: not the names."""
        memories = tuple((tuple(one[:-1] for one in m.lives), m.layouts) for m in self.memories)
        return self.tasks, self.transfers, memories, self.tensors, self.able


class TaskStart(NamedTuple):
    """A task starts, with the names of the residencies of operands, results and scratch."""

    task: int
    group: int
    cycles: Cycles
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: int | None


class TransferStart(NamedTuple):
    """A transfer starts: from a named residency to new ones."""

    slice: SliceIdx
    source: int
    transfer: Transfer
    destinations: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """How a state was reached: the last step (``None`` when time passes), and the path before."""

    state: State
    cost: Cost
    step: TaskStart | TransferStart | None = None
    before: "Path | None" = None


class TooManyStatesError(Exception):
    """The search has looked at as many states as it may."""


class Search:
    """All plans of a problem that keep within some limits.

    Parameters
    ----------
    order
        Quantities to compare plans by, the first one first; the peak is none of them.
    ceilings
        Quantities that a plan must not exceed, none of them in ``order``.
    """

    def __init__(
        self, rules: Rules, order: Sequence[Quantity], ceilings: Mapping[Quantity, int]
    ) -> None:
        self._rules = rules
        self._problem = rules.problem
        self._order, self._ceilings = tuple(order), dict(ceilings)
        self._is_timed = bool(
            rules.not_after or Quantity.MAKESPAN in order or Quantity.MAKESPAN in ceilings
        )
        self._names = count()
        self._topological = tuple(self._problem.topological_order())
        self._quickest = [
            min((c for g in rules.groups if (c := rules.cycles(t, g)) is not None), default=0)
            for t in range(len(self._problem.tasks))
        ]
        least = min((part.bytes for part in self._problem.slices), default=1)
        self._soonest_sent = min(
            (e.setup + ceil(least / e.rate) for e in rules.machine.engines), default=0
        )
        self._tensors = [
            [t.index for t in self._problem.tensors if t.memory == memory.index]
            for memory in rules.machine.memories
        ]

    def best_path(self, most_states: int) -> Path | None:
        """Return a path to a complete plan that no other one beats; ``None`` if there is none.

        Raises
        ------
        TooManyStatesError
            If so many states do not decide it.
        """
        known: dict[object, list[Cost]] = defaultdict(list)
        heap: list[tuple[tuple[int, ...], int, Path]] = []
        waiting = [Path(state, Cost()) for state in self._first_states()]
        states = 0
        while True:
            for path in waiting:
                costs = known[path.state.key()]
                if any(self._is_as_good(other, path.cost) for other in costs):
                    continue
                costs[:] = [c for c in costs if not self._is_as_good(path.cost, c)] + [path.cost]
                rank = (*self._rank(self._least(path)), path.cost.makespan)
                heappush(heap, (rank, -next(self._names), path))
            if not heap:
                return None
            path = heappop(heap)[2]
            waiting = []
            if path.cost in known[path.state.key()]:
                if self._is_complete(path.state):
                    return path
                states += 1
                if states > most_states:
                    raise TooManyStatesError
                waiting = [one for one in self._following(path) if self._may_be(one)]

    def _rank(self, cost: Cost) -> tuple[int, ...]:
        return tuple(cost.of(quantity) for quantity in self._order)

    def _least(self, path: Path) -> Cost:
        """Return what a path costs at the least: the cycles of tasks are still to come."""
        ends = [0] * len(path.state.tasks)
        for task in self._topological:
            before = max((ends[one] for one in self._rules.predecessors[task]), default=0)
            left = path.state.tasks[task][0]
            ends[task] = before + self._quickest[task] if left == WAITING else left
        left = max([*ends, *(one.left for one in path.state.transfers)], default=0)
        return path.cost._replace(makespan=path.cost.makespan + left)

    def _is_as_good(self, one: Cost, other: Cost) -> bool:
        """Say whether a state reached at one cost need not be reached at another one.

        Where tasks have to end by some cycle, only if it is reached no later.
        """
        if self._rules.not_after and one.makespan > other.makespan:
            return False
        return self._rank(one) <= self._rank(other) and all(
            one.of(quantity) <= other.of(quantity) for quantity in self._ceilings
        )

    def _may_be(self, path: Path) -> bool:
        """Say whether a path keeps to the ceilings, and all that is wanted is still somewhere."""
        least = self._least(path)
        if any(least.of(quantity) > most for quantity, most in self._ceilings.items()):
            return False
        state = path.state
        there = {one.thing for m in state.memories for one in m.lives if not one.leaving}
        wanted = {b.index for b in self._problem.buffers if b.ends_in is not None}
        for task, (left, _) in zip(self._problem.tasks, state.tasks, strict=True):
            wanted.update(task.reads if left == WAITING else ())
        for slice_ in wanted - there:
            whole = self._rules.whole[slice_]
            writer = self._rules.writer[whole]
            if whole not in there and (writer is None or state.tasks[writer][0] != WAITING):
                return False
        return True

    def _is_complete(self, state: State) -> bool:
        return (
            not state.transfers
            and all(left == DONE for left, _ in state.tasks)
            and all(
                buffer.ends_in is None or self._is_in(state, buffer.index, buffer.ends_in)
                for buffer in self._problem.buffers
            )
        )

    def _first_states(self) -> Iterator[State]:
        """Yield the states at cycle 0: all residues of tensors, all layouts of initial data.

        Of a buffer at its place every slice is a residency of its own, so that one may end when
        something is written over it while others last.
        """
        rules, memories = self._rules, range(len(self._rules.machine.memories))
        tasks = ((WAITING, -1),) * len(self._problem.tasks)
        nothing = State(tasks, (), (), ())
        of_tensors = [rules.residues[tensor.memory] for tensor in self._problem.tensors]
        for residues in product(*of_tensors):
            filled = [list(self._with_originals(nothing, m, residues)) for m in memories]
            for contents in product(*filled):
                yield nothing._replace(memories=contents, tensors=residues)

    def _with_originals(
        self, state: State, memory: MemoryIdx, tensors: tuple[int, ...]
    ) -> Iterator[Contents]:
        rules, layouts = self._rules, {()}
        for tensor in self._tensors[memory]:
            size = self._problem.tensors[tensor].bytes
            layouts = {
                (*layout, at)
                for layout in layouts
                for at in rules.addresses(memory, ("tensor", tensor), tensors[tensor])
                if not any(
                    at < other + self._problem.tensors[t].bytes and other < at + size
                    for other, t in zip(layout, self._tensors[memory], strict=False)
                )
            }
        originals = [
            part.index
            for part in self._problem.slices
            if self._problem.buffers[part.buffer].starts_in == memory
            and (part.index == part.buffer or rules.home(part.index, memory) is not None)
            and self._is_wanted(state, part.index, memory)
        ]
        choices = [
            [0] if rules.home(one, memory) is not None else rules.residues[memory]
            for one in originals
        ]
        for residues in product(*choices):
            items = [
                Live(one, residue, 0, 0, True, False, next(self._names))
                for one, residue in zip(originals, residues, strict=True)
            ]
            yield from self._filled(memory, Contents((), frozenset(layouts)), items, {})

    def _following(self, path: Path) -> Iterator[Path]:
        """Yield what can follow; where cycles do not count, one thing ends before another starts.

        That loses nothing: let all that a plan starts run in the same order, but one after the
        other. Operands are valid sooner than before with respect to it, and whatever lies in a
        memory while something runs also lay there when that started in the plan.
        """
        state, cost = path.state, path.cost
        is_idle = state.able is not None and path.step is None
        waits = {} if is_idle else self._waits(state)
        for wait, able in waits.items():
            later = self._later(state, wait)
            if later is not None:
                later = later._replace(able=able)
                yield Path(later, cost._replace(makespan=cost.makespan + wait), None, path)
        if waits and not self._is_timed:
            return
        for after, start in self._task_starts(state):
            end = cost.makespan + start.cycles
            if end <= self._rules.not_after.get(start.task, end):
                energy = self._rules.energy(start.task, self._rules.groups[start.group])
                yield Path(after, cost._replace(energy=cost.energy + energy), start, path)
        for after, move in self._transfer_starts(state):
            traffic, energy = move.transfer.traffic, move.transfer.energy
            more = Cost(cost.makespan, cost.dram_traffic + traffic, cost.energy + energy)
            yield Path(after, more, move, path)

    # Time passes.

    def _waits(self, state: State) -> dict[Cycles, frozenset[int] | None]:
        """Return how long to wait, and the engines that may start then (``None``: and tasks)."""
        ends = [n for n, _ in state.tasks] + [n for one in state.transfers for n in one[4:]]
        ends = sorted(n for n in ends if n > 0)
        waits: dict[Cycles, frozenset[int] | None] = dict.fromkeys(ends[:1])
        engines = self._rules.machine.engines if self._is_timed else ()
        for engine in engines:
            spare = engine.setup - self._soonest_sent
            setups = {e.setup for e in engines if spare >= 0 or e is engine}
            moments = ends + [one.sent - setup for one in state.transfers for setup in setups]
            leads = range(1 + max(0, spare))
            for wait in {moment - lead for moment in moments for lead in leads}:
                if 0 < wait < ends[0]:
                    waits[wait] = waits.get(wait, frozenset()) | {engine.index}
        return waits

    def _later(self, state: State, cycles: Cycles) -> State | None:
        """Return the state some cycles on; ``None`` if a transfer turns out to be redundant."""
        tasks = tuple(
            (left - cycles, group if left > cycles else -1) if left > 0 else (left, group)
            for left, group in state.tasks
        )
        transfers = tuple(
            sorted(
                RunningTransfer(
                    one.engine,
                    one.links if one.sent > cycles else (),
                    one.rate,
                    *(max(0, n - cycles) for n in one[3:]),
                )
                for one in state.transfers
                if one.left > cycles
            )
        )
        later = state._replace(tasks=tasks, transfers=transfers)
        memories = []
        for memory, contents in enumerate(state.memories):
            lives = [
                one._replace(
                    valid_in=max(0, one.valid_in - cycles), busy_for=max(0, one.busy_for - cycles)
                )
                for one in contents.lives
            ]
            fresh = {
                one.thing
                for one, before in zip(lives, contents.lives, strict=True)
                if one.valid_in == 0 < before.valid_in
                and not self._is_overwritten(later, one.thing)
            }
            gone = set()
            for place, one in enumerate(lives):
                before = contents.lives[place]
                if one.thing in fresh and before.valid_in == 0:
                    # Of two valid copies the newer one serves whatever the older one would.
                    lives[place] = one = one._replace(leaving=True)
                wanted = one.thing < 0 or self._is_wanted(later, one.thing, memory)
                is_over = one.busy_for == 0 and (one.leaving or not wanted)
                if not one.used and (not wanted or is_over):
                    return None
                if is_over:
                    gone.add(one.name)
            memories.append(self._without(memory, contents._replace(lives=tuple(lives)), gone))
        return later._replace(memories=tuple(memories))

    def _is_overwritten(self, state: State, slice_: int) -> bool:
        """Say whether a task that waits may write in place of a slice."""
        return any(
            slice_ == read and state.tasks[task.index][0] == WAITING
            for task in self._problem.tasks
            for read, _ in task.in_place
        )

    def _is_wanted(self, state: State, slice_: int, memory: MemoryIdx | None = None) -> bool:
        """Say whether a slice can still be of use, in a memory.

        A buffer that has reached the memory in which it must end, and stays there for sure, is
        wanted nowhere else for that reason.
        """
        whole = self._rules.whole
        for task, (left, _) in zip(self._problem.tasks, state.tasks, strict=True):
            if left == WAITING and any(slice_ in (read, whole[read]) for read in task.reads):
                return True
        end = self._problem.buffers[slice_].ends_in if whole[slice_] == slice_ else None
        if end is None:
            return False
        return memory == end or not (
            (memory is None or self._rules.is_ample[end]) and self._is_in(state, slice_, end)
        )

    def _is_in(self, state: State, slice_: int, memory: MemoryIdx) -> bool:
        """Say whether a slice lies in a memory or is on its way there."""
        if not state.memories:
            return False
        return any(one.thing == slice_ and not one.leaving for one in state.memories[memory].lives)

    # A task starts.

    def _task_starts(self, state: State) -> Iterator[tuple[State, TaskStart]]:
        for task in self._problem.tasks if state.able is None else ():
            before = self._rules.predecessors[task.index]
            if state.tasks[task.index][0] != WAITING or any(state.tasks[b][0] for b in before):
                continue
            for index, group in enumerate(self._rules.groups):
                cycles = self._rules.cycles(task.index, group)
                busy = sum(left > 0 and where == index for left, where in state.tasks)
                if cycles is None or busy == len(group.cores):
                    continue
                operands = [list(self._operands(state, group, read)) for read in task.reads]
                for served in product(*operands):
                    extra = sum(
                        self._rules.remote_cycles(read, group.readable[memory])
                        for read, (memory, _) in zip(task.reads, served, strict=True)
                    )
                    yield from self._started(state, task, index, cycles + extra, served)

    def _operands(
        self, state: State, group: CoreGroup, read: SliceIdx
    ) -> Iterator[tuple[MemoryIdx, Live]]:
        for memory in group.readable:
            for one in state.memories[memory].lives:
                holds = one.thing in (read, self._rules.whole[read])
                if holds and one.valid_in == 0 and not one.leaving:
                    yield memory, one

    def _started(
        self,
        state: State,
        task: Task,
        index: int,
        cycles: Cycles,
        served: tuple[tuple[MemoryIdx, Live], ...],
    ) -> Iterator[tuple[State, TaskStart]]:
        home = self._rules.groups[index].memory
        tasks = list(state.tasks)
        tasks[task.index] = cycles, index
        used = {one.name for _, one in served}
        for pairs in self._pairs_in_place(task, home, served):
            memories = [
                self._in_use(memory, contents, used, {old.name for old in pairs.values()}, cycles)
                for memory, contents in enumerate(state.memories)
            ]
            choices = [
                [pairs[written].residue]
                if written in pairs
                else [0]
                if self._rules.home(written, home) is not None
                else self._rules.residues[home]
                for written in task.writes
            ]
            for residues in product(*choices):
                items = [
                    Live(written, residue, cycles, cycles, True, False, next(self._names))
                    for written, residue in zip(task.writes, residues, strict=True)
                ]
                scratch = None
                if task.scratch:
                    scratch = next(self._names)
                    items.append(Live(-1 - task.index, -1, 0, cycles, True, True, scratch))
                over = {item.name: pairs[item.thing].name for item in items if item.thing in pairs}
                start = TaskStart(
                    task=task.index,
                    group=index,
                    cycles=cycles,
                    reads=tuple(one.name for _, one in served),
                    writes=tuple(item.name for item in items[: len(task.writes)]),
                    scratch=scratch,
                )
                for filled in self._filled(home, memories[home], items, over):
                    after = (*memories[:home], filled, *memories[home + 1 :])
                    yield state._replace(tasks=tuple(tasks), memories=after), start

    def _pairs_in_place(
        self, task: Task, home: MemoryIdx, served: Sequence[tuple[MemoryIdx, Live]]
    ) -> Iterator[dict[int, Live]]:
        """Yield the choices of pairs in place: the old residencies by the buffer written.

        The old residency is of exactly the slice, in the core's memory, serves no other read of the
        task, and nothing else reads it any more.
        """
        names = [one.name for _, one in served]
        possible = []
        for read, written in task.in_place:
            memory, old = served[task.reads.index(read)]
            is_alone = names.count(old.name) == 1 and old.busy_for == 0
            packed = self._rules.home(read, home) is None is self._rules.home(written, home)
            if is_alone and packed and memory == home and old.thing == read:
                possible.append((written, old))
        for chosen in product((False, True), repeat=len(possible)):
            some = [pair for pair, wanted in zip(possible, chosen, strict=True) if wanted]
            pairs = dict(some)
            if len(pairs) == len(some) == len({old.name for old in pairs.values()}):
                yield pairs

    # A transfer starts.

    def _transfer_starts(self, state: State) -> Iterator[tuple[State, TransferStart]]:
        """Yield every transfer that could start and brings a slice that is still wanted."""
        for part in self._problem.slices:
            slice_ = part.index
            if not self._is_wanted(state, slice_):
                continue
            for memory, contents in enumerate(state.memories):
                for one in contents.lives:
                    holds = one.thing in (slice_, self._rules.whole[slice_])
                    if not holds or one.valid_in > 0 or one.leaving:
                        continue
                    for transfer in self._rules.transfers(slice_, memory, one.thing):
                        if self._is_free(state, transfer) and all(
                            self._may_come(state, slice_, end) for end in transfer.destinations
                        ):
                            yield from self._moved(state, slice_, memory, one, transfer)

    def _may_come(self, state: State, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether pins let a slice lie in a memory; an ample one needs it only once."""
        is_there = any(one.thing == slice_ for one in state.memories[memory].lives)
        return self._rules.may_lie(slice_, memory) and not (
            is_there and self._rules.is_ample[memory]
        )

    def _is_free(self, state: State, transfer: Transfer) -> bool:
        """Say whether a channel of the engine is free, and the rate on links once they are due."""
        machine, engine, others = self._rules.machine, transfer.engine, state.transfers
        busy = sum(one.engine == engine and one.busy > 0 for one in others)
        is_able = state.able is None or engine in state.able
        return (
            is_able
            and busy < machine.engines[engine].channels
            and all(
                sum(one.rate for one in others if link in one.links and one.setup <= now < one.sent)
                <= machine.links[link].rate - transfer.rate
                for now in {max(transfer.setup, one.setup) for one in others}
                if now < transfer.sent
                for link in transfer.links
            )
        )

    def _moved(
        self, state: State, slice_: SliceIdx, source: MemoryIdx, one: Live, transfer: Transfer
    ) -> Iterator[tuple[State, TransferStart]]:
        cycles = transfer.arrived
        times = transfer.setup, transfer.sent, transfer.busy, cycles
        running = RunningTransfer(transfer.engine, transfer.links, transfer.rate, *times)
        transfers = tuple(sorted((*state.transfers, running)))
        used = [
            self._in_use(memory, contents, {one.name}, set(), transfer.sent)
            for memory, contents in enumerate(state.memories)
        ]
        ends = transfer.destinations
        residues = [self._residues(state, slice_, source, one, transfer, end) for end in ends]
        for chosen in product(*residues):
            names = tuple(next(self._names) for _ in ends)
            found = [used]
            for end, residue, name in zip(ends, chosen, names, strict=True):
                item = Live(slice_, residue, cycles, cycles, False, False, name)
                found = [
                    [*some[:end], filled, *some[end + 1 :]]
                    for some in found
                    for filled in self._filled(end, some[end], [item], {})
                ]
            for memories in found:
                after = state._replace(transfers=transfers, memories=tuple(memories))
                yield after, TransferStart(slice_, one.name, transfer, names)

    def _residues(
        self,
        state: State,
        slice_: SliceIdx,
        source: MemoryIdx,
        one: Live,
        transfer: Transfer,
        end: MemoryIdx,
    ) -> list[int]:
        """Return the residues that the engine's congruence leaves to the new residency.

        One at its place has that of its tensor, written 0; there is none if that breaks the rule.
        """
        rules, home = self._rules, self._rules.home(slice_, source)
        congruence = rules.machine.engines[transfer.engine].congruence
        first = one.residue if home is None else state.tensors[home]
        first += rules.layout_in_source(slice_, source, one.thing).offset
        at = rules.home(slice_, end)
        if at is None:
            return [r for r in rules.residues[end] if (first - r) % congruence == 0]
        to = rules.layout_in_source(slice_, end, slice_).offset + state.tensors[at]
        return [0] if (first - to) % congruence == 0 else []

    # Contents of a memory.

    def _in_use(
        self,
        memory: MemoryIdx,
        contents: Contents,
        used: Collection[int],
        leaving: Collection[int],
        cycles: Cycles,
    ) -> Contents:
        """Return the contents while something reads some of them for so many cycles."""
        if not any(one.name in used for one in contents.lives):
            return contents
        lives = tuple(
            one._replace(busy_for=max(one.busy_for, cycles), used=True, leaving=one.name in leaving)
            if one.name in used
            else one
            for one in contents.lives
        )
        return self._without(memory, contents._replace(lives=lives), ())

    def _without(self, memory: MemoryIdx, contents: Contents, gone: Collection[int]) -> Contents:
        """Return the contents without some, in an order independent of how they came."""
        lives, first = contents.lives, len(self._tensors[memory])
        order = sorted(
            (place for place, one in enumerate(lives) if one.name not in gone),
            key=lambda place: lives[place],
        )
        columns = [*range(first), *(first + place for place in order)]
        layouts = contents.layouts
        if columns != list(range(first + len(lives))):
            layouts = frozenset(tuple(layout[c] for c in columns) for layout in layouts)
        return Contents(tuple(lives[place] for place in order), layouts)

    def _filled(
        self, memory: MemoryIdx, before: Contents, items: Sequence[Live], over: Mapping[int, int]
    ) -> Iterator[Contents]:
        """Yield the contents with items put in, for each set of others that have to go.

        Parameters
        ----------
        over
            The residency in whose place an item lies, by their names.
        """
        displaced = self._displaced(memory, before.lives, items)
        ways: dict[frozenset[int], Iterable[Layout]] = {}
        if displaced is not None:
            ways = {displaced: before.layouts}
        rules, after = self._rules, before.lives
        # For each column of a layout its bytes, and what has to go for them; ``None`` stays.
        columns: list[tuple[Bytes, int | None]] = [
            (self._problem.tensors[tensor].bytes, None) for tensor in self._tensors[memory]
        ]
        columns += [(rules.size(o.thing), o.name if o.may_go() else None) for o in before.lives]
        for item in items:
            size, old = rules.size(item.thing), over.get(item.name)
            place = next((n for n, one in enumerate(after) if one.name == old), None)
            column = None if place is None else len(self._tensors[memory]) + place
            more: dict[frozenset[int], set[Layout]] = defaultdict(set)
            able = rules.addresses(memory, item.thing, item.residue)
            for gone, layouts in ways.items():
                for layout in layouts:
                    for at in able:
                        if column is None or layout[column] == at:
                            also = _overlapped(layout, columns, column, at, size)
                            if also is not None:
                                more[gone.union(also)].add((*layout, at))
            ways, after = more, (*after, item)
            columns.append((size, None))
        for gone, layouts in ways.items():
            yield self._without(memory, Contents(after, frozenset(layouts)), gone)

    def _displaced(
        self, memory: MemoryIdx, lives: Sequence[Live], items: Sequence[Live]
    ) -> frozenset[int] | None:
        """Return what lies at the places of items in tensors; ``None`` if some of it must stay."""
        found = set()
        for item in items:
            if self._rules.home(item.thing, memory) is not None:
                clashes = self._rules.clashes(item.thing)
                found |= {one for one in lives if one.thing in clashes}
        return frozenset(one.name for one in found) if all(map(Live.may_go, found)) else None


def _overlapped(
    layout: Layout,
    columns: Sequence[tuple[Bytes, int | None]],
    old: int | None,
    at: Bytes,
    size: Bytes,
) -> list[int] | None:
    """Return what an item at an address lies upon; ``None`` if some of that must stay.

    Parameters
    ----------
    old
        The column of what it is in place of.
    """
    found = []
    for column, (other, (length, name)) in enumerate(zip(layout, columns, strict=True)):
        if 0 <= other < at + size and 0 <= at < other + length and column != old:
            if name is None:
                return None
            found.append(name)
    return found
