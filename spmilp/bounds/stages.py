"""A bound from the stages that a network must pass one after another: a linear program.

Milestones cut the time of every plan into stages; each task has a window of them. Each stage has
its own work, traffic and bytes: what it loads ahead for later ones has to lie somewhere until then.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

from spmilp.bounds.linear_program import LinearProgram, proven_minimum, rounded_down, rounded_up
from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import Paths
from spmilp.bounds.resources import bytes_on_chip, kinds_able, unions
from spmilp.problem.loads import Share
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, KindIdx, MemoryIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages between tasks of which each follows the one before.

    Stage ``s`` lasts from the end of milestone ``s - 1`` (cycle 0 for the first) to the end of
    milestone ``s`` (the makespan for the last). No plan has a stage below its ``shortest`` cycles:
    heads, chains and tails. ``soonest`` and ``rest`` are for each milestone the cycles before its
    end and after it. ``first`` and ``last`` are for each task the stage in which it can start at
    the soonest and end at the latest: it starts after the milestones that it follows, and ends
    before those that follow it.
    """

    milestones: tuple[TaskIdx, ...]
    shortest: tuple[Cycles, ...]
    soonest: tuple[Cycles, ...]
    rest: tuple[Cycles, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]


def stages_along(problem: Problem, paths: Paths, most: int) -> Stages:
    """Cut along the tasks of a longest path, with ``most`` milestones at the most."""
    before = problem.predecessors()
    order = tuple(problem.topological_order())
    path = _longest_path(paths, before)
    every = -(-len(path) // most)
    milestones = tuple(path[every - 1 :: every])
    first, last = _windows(milestones, before, order)
    return Stages(
        milestones=milestones,
        shortest=_shortest(path, every, paths),
        soonest=tuple(paths.head[task] + paths.cycles[task] for task in milestones),
        rest=tuple(paths.tail[task] - paths.cycles[task] for task in milestones),
        first=first,
        last=last,
    )


def _longest_path(paths: Paths, before: tuple[tuple[TaskIdx, ...], ...]) -> list[TaskIdx]:
    """Return tasks of which each precedes the next: back from the one that ends last at best."""
    task = max(range(len(before)), key=lambda t: (paths.head[t] + paths.cycles[t], -t))
    found = [task]
    while before[task]:
        task = max(before[task], key=lambda t: (paths.head[t] + paths.cycles[t], -t))
        found.append(task)
    found.reverse()
    return found


def _shortest(path: list[TaskIdx], every: int, paths: Paths) -> tuple[Cycles, ...]:
    """Return for each stage the cycles of its part of the path, with the head and the tail."""
    found = []
    for begin in range(0, len(path), every):
        part = path[begin : begin + every]
        cycles = sum(paths.cycles[task] for task in part)
        if begin == 0:
            cycles += paths.head[part[0]]
        if len(part) < every:
            cycles += paths.tail[part[-1]] - paths.cycles[part[-1]]
        found.append(cycles)
    if len(path) % every == 0:
        found.append(paths.tail[path[-1]] - paths.cycles[path[-1]])
    return tuple(found)


def _windows(
    milestones: tuple[TaskIdx, ...],
    before: tuple[tuple[TaskIdx, ...], ...],
    order: tuple[TaskIdx, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first and the last stage of each task."""
    opens = {task: stage + 1 for stage, task in enumerate(milestones)}
    first, last = [0] * len(before), [len(milestones)] * len(before)
    for stage, task in enumerate(milestones):
        last[task] = stage
    for task in order:
        for earlier in before[task]:
            first[task] = max(first[task], first[earlier], opens.get(earlier, 0))
    for task in reversed(order):
        for earlier in before[task]:
            last[earlier] = min(last[earlier], last[task])
    return tuple(first), tuple(last)


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, order=True)
class Load:
    """Buffers that come from a DRAM, alike but for their bytes.

    All of it has been loaded by the end of the stage ``last``, and any of it is first read in the
    stage ``read_from``: what is loaded before lies on the chip until then.
    """

    dram: MemoryIdx
    last: int
    read_from: int


@dataclass(frozen=True, slots=True, order=True)
class Store:
    """Buffers that end in a DRAM.

    They are written in the stage ``first`` at the soonest and ``last`` at the latest: from its end
    they lie on the chip until they are stored.
    """

    dram: MemoryIdx
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Sums over all that is alike.

    ``work`` is the least cycles by the kinds of core that are able, and by window; ``loads`` and
    ``stores`` bytes, and the rate times cycles that moving them holds at least.
    ``on_chip`` is the bytes of all memories that are no DRAM; ``None`` without limit.
    """

    work: dict[tuple[frozenset[KindIdx], int, int], Cycles]
    loads: dict[Load, tuple[Bytes, Fraction]]
    stores: dict[Store, tuple[Bytes, Fraction]]
    on_chip: Bytes | None


def demands_of(problem: Problem, stages: Stages, movement: Movement) -> Demands:
    """Sum up what a problem's tasks and buffers ask of the stages."""
    work: dict[tuple[frozenset[KindIdx], int, int], Cycles] = defaultdict(int)
    for task in problem.tasks:
        window = stages.first[task.index], stages.last[task.index]
        work[kinds_able(task.cycles), *window] += min(c for c in task.cycles if c is not None)
    return Demands(
        work=dict(work),
        loads=_summed(_loads(stages, movement)),
        stores=_summed(_stores(stages, movement)),
        on_chip=bytes_on_chip(problem.machine),
    )


def _loads(stages: Stages, movement: Movement) -> Iterable[tuple[Load, Bytes, Fraction]]:
    """Yield what must come from a DRAM before its readers end.

    What is for each of its readers has come before the first of them ends; where the parts may
    come one by one, all have come by the end of the last one.
    """
    for load, uses in movement.loads:
        dram = load.buffer.starts_in
        if dram is not None:
            ends = [stages.last[task] for task in load.readers]
            begins = min(stages.first[task] for task in load.readers)
            last = max(ends) if load.share is Share.REST else min(ends)
            yield Load(dram, last, begins), load.bytes, uses[0]


def _stores(stages: Stages, movement: Movement) -> Iterable[tuple[Store, Bytes, Fraction]]:
    """Yield what must get to a DRAM after its writer has ended."""
    for task, buffer, uses in movement.stores:
        if buffer.ends_in is not None:
            window = stages.first[task.index], stages.last[task.index]
            yield Store(buffer.ends_in, *window), buffer.bytes, uses[0]


def _summed(rows: Iterable[tuple[Key, Bytes, Fraction]]) -> dict[Key, tuple[Bytes, Fraction]]:
    found: dict[Key, tuple[Bytes, Fraction]] = {}
    for key, size, use in rows:
        before = found.get(key, (0, Fraction(0)))
        found[key] = before[0] + size, before[1] + use
    return found


MOST_MILESTONES = 40
"""Stages into which a problem is cut at most, which bounds the size of the linear program."""

ITERATIONS = 200_000
"""Limit on the iterations of the dual simplex."""

Term: TypeAlias = tuple[int, float]
"""A variable and its factor."""


def stages_bound(problem: Problem, movement: Movement, paths: Paths) -> Cycles:
    """Return the least cycles of all stages between milestones together.

    Let tasks ``m_0, m_1, ...`` each precede the next (they are taken from a longest path). Their
    ends cut the time of any plan into stages, and a task that follows ``m_i`` and precedes ``m_j``
    runs in the stages from ``i + 1`` to ``j``. Take a plan and let ``x_s`` be the length of stage
    ``s``. What it does in each stage satisfies:

    - the tasks that only some kinds of core can run take from those cores at most ``x_s`` each;
    - what moves to and from DRAM holds rate times cycles of the links around it (as in the traffic
      bound), at most ``rate * x_s``; a transfer counts in each stage by what it sends in it;
    - a stage lasts at least as long as the part of the path between its milestones, all stages
      until a milestone as its head and its cycles, and those behind it as its tail without them;
    - at the end of stage ``s`` the memories on the chip hold side by side: what has been loaded and
      is only read later (a slice has its bytes from the start of its transfer, its source until it
      has sent them), and outputs that have been written and not been sent.

    So the least sum of ``x_s`` under these conditions, a linear program, is a bound. Unlike the
    bounds on work and traffic alone it sees that a network may be bound by its work first and by
    its traffic later, and that memory limits how far the one can make up for the other.
    """
    if not problem.tasks:
        return 0
    stages = stages_along(problem, paths, MOST_MILESTONES)
    demands = demands_of(problem, stages, movement)
    return proven_minimum(_Program(problem, stages, demands, movement).made(), ITERATIONS)


class _Program:
    """Builds the program, one kind of condition after another."""

    def __init__(
        self, problem: Problem, stages: Stages, demands: Demands, movement: Movement
    ) -> None:
        self._problem = problem
        self._stages = stages
        self._demands = demands
        self._program = LinearProgram()
        gates = movement.gates.items()
        self._rates = {dram: [one.passages[0].rate for one in some] for dram, some in gates}
        horizon = rounded_up(self._everything_after_everything())
        self._length = [self._program.variable(horizon, 1.0) for _ in stages.shortest]
        # For each boundary, behind stage s: (variable, factor) of what lies on the chip, in bytes.
        self._on_chip: list[list[Term]] = [[] for _ in stages.milestones]
        self._fixed = [0] * len(stages.milestones)
        # For each DRAM and stage: rate times cycles of loads and of stores.
        self._out: dict[int, list[list[Term]]] = defaultdict(self._nothing)
        self._in: dict[int, list[list[Term]]] = defaultdict(self._nothing)

    def made(self) -> LinearProgram:
        """Return the program."""
        for length, least in zip(self._length, self._stages.shortest, strict=True):
            self._program.at_least(float(least), [(length, 1.0)])
        self._milestones_keep_to_heads_and_tails()
        self._work_takes_the_cores()
        for load, (size, use) in sorted(self._demands.loads.items()):
            self._load(load, size, use)
        for store, (size, use) in sorted(self._demands.stores.items()):
            self._store(store, size, use)
        self._traffic_takes_the_links()
        self._memories_hold_what_outlives_a_stage()
        return self._program

    def _milestones_keep_to_heads_and_tails(self) -> None:
        for number, (soonest, rest) in enumerate(
            zip(self._stages.soonest, self._stages.rest, strict=True), start=1
        ):
            self._program.at_least(float(soonest), [(x, 1.0) for x in self._length[:number]])
            self._program.at_least(float(rest), [(x, 1.0) for x in self._length[number:]])

    def _nothing(self) -> list[list[Term]]:
        return [[] for _ in self._length]

    def _everything_after_everything(self) -> Fraction:
        """Return cycles that no stage needs more of: all paths, work and traffic in turn."""
        demands, rates = self._demands, self._rates
        uses = [use for _, use in (*demands.loads.values(), *demands.stores.values())]
        slowest = min(
            (rate for pair in rates.values() for rate in pair if rate), default=Fraction(1)
        )
        in_turn = sum(demands.work.values()) + sum(self._stages.shortest) + 1
        return in_turn + sum(uses, Fraction(0)) / slowest

    def _work_takes_the_cores(self) -> None:
        """Share the work of each window out over its stages; the able cores have their length."""
        work: dict[frozenset[int], list[list[Term]]] = defaultdict(self._nothing)
        fixed: dict[tuple[frozenset[int], int], int] = defaultdict(int)
        for (able, first, last), cycles in sorted(
            self._demands.work.items(), key=lambda item: (sorted(item[0][0]), item[0][1:])
        ):
            if first == last:
                fixed[able, first] += cycles
                continue
            parts = [self._program.variable(float(cycles)) for _ in range(first, last + 1)]
            self._program.at_least(float(cycles), [(part, 1.0) for part in parts])
            for stage, part in enumerate(parts, start=first):
                work[able][stage].append((part, 1.0))
        sets = {able for able, _, _ in self._demands.work}
        for kinds in unions(sets):
            cores = sum(core.kind in kinds for core in self._problem.machine.cores)
            inside = [able for able in sorted(sets, key=sorted) if able <= kinds]
            for stage, length in enumerate(self._length):
                terms = [term for able in inside for term in work[able][stage]]
                least = sum(fixed[able, stage] for able in inside)
                self._program.at_least(float(least), [(length, float(cores)), *_negated(terms)])

    def _load(self, load: Load, size: Bytes, use: Fraction) -> None:
        loaded = self._amounts(size, 0, load.last, self._out[load.dram], use)
        for stage in range(load.read_from):
            if stage <= load.last:
                self._on_chip[stage].append((loaded[stage], 1.0))
            else:
                self._fixed[stage] += size

    def _store(self, store: Store, size: Bytes, use: Fraction) -> None:
        end = len(self._length) - 1
        stored = self._amounts(size, store.first, end, self._in[store.dram], use)
        for stage in range(store.last, len(self._on_chip)):
            self._fixed[stage] += size
            self._on_chip[stage].append((stored[stage - store.first], -1.0))

    def _amounts(
        self, size: Bytes, first: int, last: int, traffic: list[list[Term]], use: Fraction
    ) -> list[int]:
        """Return variables: of ``size`` bytes, how many have been moved by the end of each stage.

        What a stage adds to them takes the links in it.
        """
        moved = [self._program.variable(float(size)) for _ in range(first, last + 1)]
        self._program.at_least(float(size), [(moved[-1], 1.0)])
        per_byte = rounded_down(use / size)
        for stage, amount in enumerate(moved, start=first):
            traffic[stage].append((amount, per_byte))
            if stage > first:
                earlier = moved[stage - 1 - first]
                traffic[stage].append((earlier, -per_byte))
                self._program.at_least(0.0, [(amount, 1.0), (earlier, -1.0)])
        return moved

    def _traffic_takes_the_links(self) -> None:
        for dram, rates in self._rates.items():
            for length, loads, stores in zip(
                self._length, self._out[dram], self._in[dram], strict=True
            ):
                for terms, rate in zip((loads, stores, [*loads, *stores]), rates, strict=True):
                    if terms and rate:
                        self._program.at_least(0.0, [(length, rounded_up(rate)), *_negated(terms)])

    def _memories_hold_what_outlives_a_stage(self) -> None:
        if self._demands.on_chip is None:
            return
        for terms, fixed in zip(self._on_chip, self._fixed, strict=True):
            self._program.at_least(float(fixed - self._demands.on_chip), _negated(terms))


def _negated(terms: list[Term]) -> list[Term]:
    return [(variable, -factor) for variable, factor in terms]
