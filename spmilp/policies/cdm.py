"""CDM: buffers placed in scratchpads, replicated or off chip, with the contention of links.

Venkataramani, Chan and Mitra, "Scratchpad-Memory Management for Multi-Threaded Applications on
Many-Core Architectures" (coordinated data management), ACM TECS 18(1), 2019, doi 10.1145/3301308.
Its equations, its iteration rule and its benchmarks could not be read: the algorithm here is a
reconstruction from its abstract.

What is taken: private and shared data are told apart and placed at compile time, in the scratchpad
of a core or off chip; shared data is replicated in several scratchpads if that shortens the access
or the contention of links on XY routes; an iterative algorithm that scales. Its exact program is
not here.

What the paper leaves open, or has otherwise, and what is done here:

- Its threads are on given cores; here tasks are, by runs of neighbouring tiles of an operator.
- Its cores load and store single words; here what a task reads comes by transfers. Each reader
  gets a buffer from its home or from DRAM, for every task or once, as a replica of its own.
- The time of a wave of operators is that of its busiest core, work and transfers one after another,
  or of its busiest link: the contention. Waves follow each other as between barriers; the sum over
  all waves is made small.
- Its variables seem to keep their places for the whole program; here for their whole lives.
- From everything off chip, each buffer in turn takes the choice that gains most cycles for the
  bytes that it takes more, until none gains. All who read a buffer get it from one place in one
  way, as far as that is possible.
- A buffer is written once here, so that replicas stay equal; nothing is overwritten in place. A
  home is sought among four of the scratchpads that use the buffer.
- Addresses are found afterwards; where there are none together, the largest of what is kept stays
  away from there.

Not taken: machines without exactly one DRAM, cores that work in DRAM, data that begins or ends in a
scratchpad, buffers without a transfer straight between DRAM and scratchpad, tasks whose streams do
not fit.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import OneAfterAnother, Policy, Setting
from spmilp.policies.rammer import waves_of
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import ConflictSet
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.schedule.kernels.records import NEVER, Ints, numbers
from spmilp.solvers.schedule.orders import round_robin
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx

Charges: TypeAlias = Counter[int]
"""Cycles for which a resource is busy in a wave, by the position in a flat table. It has a row for
each wave: first a column for each core, then one for each link."""

HOMES = 4
"""Scratchpads that one buffer may have its home in, at most."""


class Stay(NamedTuple):
    """So many blocks are taken in a memory from one step to another, both included."""

    memory: MemoryIdx
    first: int
    last: int
    blocks: int


class Fetch(NamedTuple):
    """How tasks in a scratchpad get a buffer: from which memory, and once or for each task."""

    source: MemoryIdx
    once: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where a buffer lies, and how the tasks that read it get it.

    In its home, a scratchpad, it lies from its first to its last use, if it has one; there are
    fetches for each other scratchpad in which tasks read it. If it ``is_stored``, a copy goes to
    DRAM that does not go there whatever is chosen. ``places`` and ``cycles`` are its
    :data:`Charges`.
    """

    home: MemoryIdx | None
    fetches: Mapping[MemoryIdx, Fetch]
    is_stored: bool
    places: Ints
    cycles: Ints
    stays: tuple[Stay, ...]

    @property
    def keeps(self) -> frozenset[MemoryIdx]:
        """The scratchpads in which it lies for longer than a task: its home and its replicas."""
        replicas = {memory for memory, fetch in self.fetches.items() if fetch.once}
        return frozenset(replicas if self.home is None else {self.home, *replicas})


class Accesses:
    """The tasks of a problem one operator after another, and what each buffer may choose.

    A *wave* is what runs between two barriers, as in a program of several threads: the operators
    that have equally many operators before them on their longest chain.

    The tasks are in ``order``; a step is a place in it. The table of waves has a ``width`` of
    columns, for cores and links. Whatever is chosen, ``base`` has the cycles for which each
    resource is busy in each wave, and ``fixed`` the blocks of results and scratch in each memory at
    each step. There are choices for each buffer that tasks read; the first one is off chip. Once
    ``is_over`` says that time is short, the buffers that are left stay off chip.

    Raises a ``NotTakenError`` if data cannot be moved in one transfer, or the streams of a task do
    not fit.
    """

    def __init__(self, setting: Setting, is_over: Callable[[], bool] = lambda: False) -> None:
        self.setting = setting
        problem, machine = setting.problem, setting.problem.machine
        self.order: list[TaskIdx] = round_robin(problem, numbers(setting.cores)).tolist()
        self._step_of = {task: number for number, task in enumerate(self.order)}
        self._waves = waves_of(problem)
        self._cores = len(machine.cores)
        self.width = self._cores + len(machine.links)
        self._use = cache(self._use_of)
        reads: dict[BufferIdx, dict[MemoryIdx, list[int]]] = defaultdict(dict)
        for number, task in enumerate(self.order):
            for buffer in set(map(setting.buffer_of, problem.tasks[task].reads)):
                reads[buffer].setdefault(setting.memories[task], []).append(number)
        self._reads = dict(sorted(reads.items()))
        self.base = np.zeros((1 + max(self._waves), self.width), np.int64)
        self.fixed = np.zeros((len(machine.memories), len(self.order)), np.int64)
        self._add_fixed()
        self.choices = {buffer: self._choices(buffer, is_over()) for buffer in self._reads}
        used = self.fixed.copy()
        for off_chip, *_ in self.choices.values():
            add_stays(used, off_chip, 1)
        for step, task in enumerate(self.order):
            setting.demand_room("cdm", task, int(used[setting.memories[task], step]))

    def users(self, buffer: BufferIdx) -> list[MemoryIdx]:
        """Return the scratchpads in which tasks write or read a buffer."""
        written = self._written_in(buffer)
        return sorted({*self._reads[buffer], *([] if written is None else [written])})

    def positions(self, step: int, buffer: BufferIdx) -> list[int]:
        """Return the reads of a buffer at a step."""
        reads = enumerate(self.setting.problem.tasks[self.order[step]].reads)
        return [position for position, read in reads if self.setting.buffer_of(read) == buffer]

    def streamed(self, step: int, buffer: BufferIdx, at: MemoryIdx) -> dict[int, SliceIdx] | None:
        """Return what is fetched for each read of a buffer at a step: the slice, or all of it.

        ``None`` if no engine can.
        """
        task, found = self.order[step], dict[int, SliceIdx]()
        memory, reads = self.setting.memories[task], self.setting.problem.tasks[task].reads
        for position in self.positions(step, buffer):
            some = (reads[position], buffer)
            able = next((o for o in some if self._can_move(o, buffer, at, memory)), None)
            if able is None:
                return None
            found[position] = able
        return found

    def _can_move(self, slice_: SliceIdx, holder: SliceIdx, at: MemoryIdx, to: MemoryIdx) -> bool:
        way = self.setting.way(slice_, holder, at, to)
        return way is not None and self.setting.tables.fits(slice_, to)

    def _written_in(self, buffer: BufferIdx) -> MemoryIdx | None:
        writer = self.setting.tables.writers[buffer]
        return None if writer is None else self.setting.memories[writer]

    def _homes(self, buffer: BufferIdx) -> list[MemoryIdx]:
        """Return scratchpads of those who use it; of many some, evenly chosen."""
        users, written = self.users(buffer), self._written_in(buffer)
        if len(users) > HOMES:
            # Other ones for the next buffer, so that not all meet at the same scratchpads.
            places = (i * len(users) // HOMES + buffer for i in range(HOMES))
            some = {users[place % len(users)] for place in places}
            users = sorted(some if written is None else {*some, written})
        source = self.setting.dram if written is None else written
        return [m for m in users if m == written or self._can_move(buffer, buffer, source, m)]

    def _add_fixed(self) -> None:
        """Add what every choice has: work, stores of outputs, blocks of results and scratch."""
        setting, busy = self.setting, Charges()
        for step, index in enumerate(self.order):
            task, memory = setting.problem.tasks[index], setting.memories[index]
            busy[self._waves[index] * self.width + setting.cores[index]] += setting.cycles(index)
            self.fixed[memory, step] = setting.tables.blocks(task.scratch, memory)
            for written in task.writes:
                self.fixed[memory, step] += setting.tables.blocks_of(written, memory)
                if setting.problem.buffers[written].ends_in is not None:
                    busy.update(self._charges(written, written, (memory, setting.dram), index))
        self.base.reshape(-1)[list(busy.keys())] += list(busy.values())

    def _choices(self, buffer: BufferIdx, stays_off_chip: bool) -> tuple[Choice, ...]:
        """Return everything off chip, then what each home and each way to fetch make of it."""
        homes = [None, *([] if stays_off_chip else self._homes(buffer))]
        found = dict[object, Choice]()
        for home, once in product(homes, (False, True)[: 1 if stays_off_chip else 2]):
            source = self.setting.dram if home is None else home
            others = (memory for memory in self._reads[buffer] if memory != home)
            fetches = {memory: self._fetch(buffer, memory, source, once) for memory in others}
            if (key := (home, *fetches.values())) not in found:
                found[key] = self._choice(buffer, home, fetches)
        return tuple(found.values())

    def _fetch(self, buffer: BufferIdx, memory: MemoryIdx, source: MemoryIdx, once: bool) -> Fetch:
        """Return how tasks in a memory get a buffer: as wanted, else in another way."""
        steps, dram = self._reads[buffer][memory], self.setting.dram
        for fetch in (Fetch(source, once), Fetch(source, not once), Fetch(dram, once=False)):
            if fetch.once:
                can = len(steps) > 1 and self._can_move(buffer, buffer, fetch.source, memory)
            else:
                can = all(self.streamed(step, buffer, fetch.source) is not None for step in steps)
            if can:
                return fetch
        raise self.setting.no_way(buffer, dram, memory)

    def _choice(
        self, buffer: BufferIdx, home: MemoryIdx | None, fetches: Mapping[MemoryIdx, Fetch]
    ) -> Choice:
        uses = [self._use(buffer, memory, fetch) for memory, fetch in fetches.items()]
        uses += [] if home is None else [self._use(buffer, home, None)]
        busy, stays = Charges(), list[Stay]()
        for charges, taken in uses:
            busy.update(charges)
            stays += taken
        dram, origin = self.setting.dram, self.setting.problem.buffers[buffer]
        is_read_there = any(fetch.source == dram for fetch in fetches.values())
        is_stored = is_read_there and origin.starts_in is None and origin.ends_in is None
        writer = self.setting.tables.writers[buffer]
        if is_stored and writer is not None:
            ends = self.setting.memories[writer], dram
            busy.update(self._charges(buffer, buffer, ends, writer))
        return Choice(
            home=home,
            fetches=fetches,
            is_stored=is_stored,
            places=numbers(busy.keys()),
            cycles=numbers(busy.values()),
            stays=tuple(stays),
        )

    def _use_of(
        self, buffer: BufferIdx, memory: MemoryIdx, fetch: Fetch | None
    ) -> tuple[Charges, list[Stay]]:
        """Return what it takes to fetch a buffer to a memory; ``None``: to have its home there."""
        size = self.setting.tables.blocks_of(buffer, memory)
        if fetch is None:
            return self._home(buffer, memory, size)
        steps, ends = self._reads[buffer][memory], (fetch.source, memory)
        if fetch.once:
            charges = self._charges(buffer, buffer, ends, self.order[steps[0]])
            return charges, [Stay(memory, steps[0], steps[-1], size)]
        charges, stays = Charges(), list[Stay]()
        for step in steps:
            slices = self.streamed(step, buffer, fetch.source) or {}
            for one in dict.fromkeys(slices.values()):
                charges.update(self._charges(one, buffer, ends, self.order[step]))
                stays.append(Stay(memory, step, step, self.setting.tables.blocks_of(one, memory)))
        return charges, stays

    def _home(self, buffer: BufferIdx, memory: MemoryIdx, size: int) -> tuple[Charges, list[Stay]]:
        uses = [step for steps in self._reads[buffer].values() for step in steps]
        writer, written = self.setting.tables.writers[buffer], self._written_in(buffer)
        first = min(uses) if writer is None else self._step_of[writer]
        if written == memory:  # the result itself is fixed
            return Charges(), [Stay(memory, first + 1, max(uses), size)]
        source, core = written, None
        if source is None:
            cores = self.setting.problem.machine.cores
            source, core = self.setting.dram, next(c.index for c in cores if c.memory == memory)
        charges = self._charges(buffer, buffer, (source, memory), self.order[first], core)
        return charges, [Stay(memory, first, max(uses), size)]

    def _charges(
        self,
        slice_: SliceIdx,
        buffer: BufferIdx,
        ends: tuple[MemoryIdx, MemoryIdx],
        task: TaskIdx,
        core: CoreIdx | None = None,
    ) -> Charges:
        """Return what one transfer keeps busy: a task's core, and the links for their share."""
        option = self.setting.transfer(slice_, buffer, *ends)
        first, links = self._waves[task] * self.width, self.setting.problem.machine.links
        core = self.setting.cores[task] if core is None else core
        found = Charges({first + core: option.cycles})
        for link in option.links:
            share = -(-option.moving * option.rate // links[link].rate)
            found[first + self._cores + link] = int(share)
        return found


def add_stays(used: Ints, choice: Choice, sign: int) -> None:
    """Add the blocks of a choice to those in use, or take them away with ``sign`` -1."""
    for one in choice.stays:
        used[one.memory, one.first : one.last + 1] += sign * one.blocks


class Improvement:
    """A choice for each buffer, and what others gain; at first everything is off chip."""

    def __init__(self, accesses: Accesses) -> None:
        some = accesses.setting.tables.capacity
        self._capacity = numbers(NEVER if blocks is None else blocks for blocks in some)
        self._width = accesses.width
        self._busy = accesses.base.copy()
        self._used = accesses.fixed.copy()
        self.chosen = {buffer: choices[0] for buffer, choices in accesses.choices.items()}
        for choice in self.chosen.values():
            self._take(choice, 1)

    def run(self, given: Mapping[BufferIdx, Iterable[Choice]], is_over: Callable[[], bool]) -> None:
        """Give each buffer the best of its choices, round by round, until none gains."""
        gains = True
        while gains and not is_over():
            gains = False
            for buffer, some in given.items():
                if is_over():
                    break
                now = self.chosen[buffer]
                best = max(some, key=partial(self._worth, now))
                if self._worth(now, best) > 0.0:
                    self._take(now, -1)
                    self._take(best, 1)
                    self.chosen[buffer] = best
                    gains = True

    def cost(self) -> Cycles:
        """Return the cycles of all waves: each as long as its busiest core, or link."""
        return int(self._busy.max(axis=1).sum())

    def _take(self, choice: Choice, sign: int) -> None:
        self._busy.reshape(-1)[choice.places] += sign * choice.cycles
        add_stays(self._used, choice, sign)

    def _worth(self, now: Choice, other: Choice) -> float:
        """Return the cycles that a choice gains for each more block; 0 where it has no room."""
        gain = self._gain(now, other)
        if gain <= 0:
            return 0.0
        memories = [*{one.memory for one in (*now.stays, *other.stays)}]
        before = self._used[memories]
        add_stays(self._used, now, -1)
        add_stays(self._used, other, 1)
        after = self._used[memories]
        self._used[memories] = before
        is_more = after > before
        if (is_more & (after > self._capacity[memories, np.newaxis])).any():
            return 0.0
        return gain / max(1, int((after - before).max(initial=0)))

    def _gain(self, now: Choice, other: Choice) -> Cycles:
        """Return the cycles that a choice saves."""
        places = np.concatenate([now.places, other.places])
        waves, row = np.unique(places // self._width, return_inverse=True)
        rows = self._busy[waves]
        before = rows.max(axis=1).sum()
        cycles = np.concatenate([-now.cycles, other.cycles])
        np.add.at(rows.reshape(-1), row * self._width + places % self._width, cycles)
        return int(before - rows.max(axis=1).sum())


SHARE_OF_CHOICES = 0.35
"""Share of the time limit by which the choices of buffers have been collected."""

SHARE = 0.7
"""Share of the time limit by which the search for a placement has ended."""


class Cdm(Policy):
    """Places buffers in scratchpads, in several where that pays, or off chip."""

    name = "cdm"

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the best choices; what has no addresses together is taken apart."""
        clock, setting = context.clock, Setting(context.problem, self.name)
        accesses = Accesses(setting, lambda: clock.is_over(SHARE_OF_CHOICES))
        choices = {
            buffer: [one for one in some if self.allows(accesses, buffer, one)]
            for buffer, some in accesses.choices.items()
        }
        while True:
            found = Improvement(accesses)
            with context.until_interrupted(lambda: True):
                found.run(choices, lambda: clock.is_over(SHARE))
            plan = taken_down(accesses, found.chosen).plan()
            if isinstance(plan, Plan):
                break
            memory, rival = plan.memory, _largest_rival(accesses, plan, found.chosen)
            if rival is None:
                return context.unknown(f"{context.problem.name}: no addresses, all data off chip")
            choices[rival] = [one for one in choices[rival] if memory not in one.keeps]
        chosen = found.chosen.values()
        options = (
            ("homes", str(sum(one.home is not None for one in chosen))),
            ("replicas", str(sum(f.once for one in chosen for f in one.fetches.values()))),
            ("estimated_cycles", str(found.cost())),
        )
        return self.answer(context, plan, options, keeps_transfers=True)

    def allows(self, accesses: Accesses, buffer: BufferIdx, choice: Choice) -> bool:
        """Say whether a buffer may have a choice: all may. Comparisons with less forbid some."""
        return True


def _largest_rival(
    accesses: Accesses, found: ConflictSet, chosen: Mapping[BufferIdx, Choice]
) -> BufferIdx | None:
    """Return the largest buffer that is kept among those that have no addresses together."""
    kept = {
        item.slice
        for item in found.items
        if isinstance(item, CandidateResidency)
        and item.slice in chosen
        and item.memory in chosen[item.slice].keeps
    }
    size = accesses.setting.tables.blocks_of
    return max(kept, key=lambda buffer: (size(buffer, found.memory), buffer), default=None)


def taken_down(accesses: Accesses, chosen: Mapping[BufferIdx, Choice]) -> OneAfterAnother:
    """Write down what the choices say, step by step."""
    setting, written = accesses.setting, OneAfterAnother(accesses.setting)
    held: dict[tuple[BufferIdx, MemoryIdx], CandidateResidency] = {}

    def fetch(step: int, buffer: BufferIdx, memory: MemoryIdx) -> Mapping[int, CandidateResidency]:
        """Return what serves each read of a buffer."""
        choice = chosen[buffer]
        if choice.home is not None and (buffer, choice.home) not in held:
            held[buffer, choice.home] = written.load(buffer, choice.home)
        if memory != choice.home:
            source, once = choice.fetches[memory]
            place = written.in_dram(buffer) if source == setting.dram else held[buffer, source]
            if not once:
                slices = accesses.streamed(step, buffer, source) or {}
                distinct = dict.fromkeys(slices.values())
                found = {one: written.copy(place, one, memory) for one in distinct}
                return {position: found[one] for position, one in slices.items()}
            if (buffer, memory) not in held:
                held[buffer, memory] = written.copy(place, buffer, memory)
        return dict.fromkeys(accesses.positions(step, buffer), held[buffer, memory])

    for step, task in enumerate(accesses.order):
        wanted, memory = setting.problem.tasks[task], setting.memories[task]
        served: dict[int, CandidateResidency] = {}
        for buffer in dict.fromkeys(map(setting.buffer_of, wanted.reads)):
            served.update(fetch(step, buffer, memory))
        results = written.run(task, [served[position] for position in range(len(wanted.reads))])
        for buffer, result in results.items():
            choice = chosen.get(buffer)
            if choice is not None and choice.home is not None:
                away = choice.home != memory
                home = written.copy(result, buffer, choice.home) if away else result
                held[buffer, choice.home] = home
            is_output = setting.problem.buffers[buffer].ends_in is not None
            if is_output or (choice is not None and choice.is_stored):
                written.store(result)
    return written
