"""A bound from the stages that a network must pass one after another: a linear program.

Each stage has its own work, traffic and bytes: what it loads ahead for later ones has to lie
somewhere until then.
"""

from collections import defaultdict
from fractions import Fraction
from math import inf, nextafter
from typing import TypeAlias

from spmilp.bounds.critical_path import Paths
from spmilp.bounds.movement import Movement
from spmilp.bounds.prices import LinearProgram, proven_minimum
from spmilp.bounds.stage_demands import (
    Demands,
    Kept,
    Load,
    Stages,
    Store,
    demands_of,
    stages_along,
)
from spmilp.bounds.work import unions
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles

MOST_MILESTONES = 40
ITERATIONS = 200_000
"""Of the dual simplex."""

ANY_DRAM = -1

Term: TypeAlias = tuple[int, float]
"""A variable and its factor."""


def stages_bound(problem: Problem, movement: Movement, paths: Paths) -> Cycles:
    """Return the least cycles of all stages between milestones together.

    Let tasks ``m_0, m_1, ...`` each precede the next (they are taken from a longest path). Their
    ends cut the time of any plan into stages, and a task that follows ``m_i`` and precedes ``m_j``
    runs in the stages from ``i + 1`` to ``j``. Take a plan and let ``x_s`` be the length of stage
    ``s``. What it does in each stage satisfies:

    - the tasks that only some kinds of core can run take from those cores at most ``x_s`` each;
    - what moves to and from DRAM holds rate times cycles of the cuts around it (as in the traffic
      bound), at most ``rate * x_s``; a transfer counts in each stage by the part of its cycles;
    - a stage lasts at least as long as the part of the path between its milestones, all stages
      until a milestone as its head and its cycles, and those behind it as its tail without them;
    - at the end of stage ``s`` the memories on the chip hold side by side: what has been loaded and
      is only read later (a slice has its bytes from the start of its transfer), outputs that have
      been written and not been stored, and what tasks have written and others read later, unless
      it has been stored to DRAM, which costs its bytes twice; but once if it has to end there, and
      it counts as an output only when it is read no more.

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
        self._movement = movement
        self._program = LinearProgram()
        horizon = _up(self._everything_after_everything())
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
        for kept, size in sorted(self._demands.kept.items()):
            self._keep(kept, size)
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
        demands, rates = self._demands, self._rates()
        uses = [use for _, use in (*demands.loads.values(), *demands.stores.values())]
        uses += [Fraction(2 * size) for size in demands.kept.values()]
        slowest = min(
            (rate for pair in rates.values() for rate in pair if rate), default=Fraction(1)
        )
        in_turn = sum(demands.work.values()) + sum(self._stages.shortest) + 1
        return in_turn + sum(uses, Fraction(0)) / slowest

    def _rates(self) -> dict[int, tuple[Fraction, Fraction, Fraction]]:
        """Return for each DRAM the rates out, in, and both ways together."""
        movement = self._movement
        return {
            dram.index: (
                movement.rate_out(dram.index),
                movement.rate_in(dram.index),
                movement.rate_both_ways(dram.index),
            )
            for dram in self._problem.machine.drams
        }

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

    def _keep(self, kept: Kept, size: Bytes) -> None:
        """Let a part of what outlives a stage be stored and loaded again, through any DRAM.

        What ends in a DRAM is stored there anyway.
        """
        for stage in range(kept.written, kept.read):
            self._fixed[stage] += size
        if not self._problem.machine.drams:
            return
        spilled = self._program.variable(float(size))
        for stage in range(kept.written, kept.read):
            self._on_chip[stage].append((spilled, -1.0))
        for side in (self._out,) if kept.ends_in_dram else (self._out, self._in):
            parts = [self._program.variable(float(size)) for _ in range(kept.first, kept.last + 1)]
            self._program.at_least(0.0, [*((part, 1.0) for part in parts), (spilled, -1.0)])
            for stage, part in enumerate(parts, start=kept.first):
                side[ANY_DRAM][stage].append((part, 1.0))

    def _amounts(
        self, size: Bytes, first: int, last: int, traffic: list[list[Term]], use: Fraction
    ) -> list[int]:
        """Return variables: of ``size`` bytes, how many have been moved by the end of each stage.

        What a stage adds to them takes the links in it.
        """
        moved = [self._program.variable(float(size)) for _ in range(first, last + 1)]
        self._program.at_least(float(size), [(moved[-1], 1.0)])
        per_byte = _down(use / size)
        for stage, amount in enumerate(moved, start=first):
            traffic[stage].append((amount, per_byte))
            if stage > first:
                earlier = moved[stage - 1 - first]
                traffic[stage].append((earlier, -per_byte))
                self._program.at_least(0.0, [(amount, 1.0), (earlier, -1.0)])
        return moved

    def _traffic_takes_the_links(self) -> None:
        rates = self._rates()
        if not rates:
            return
        drams = [*rates, ANY_DRAM]
        out, back, both = (sum(some, Fraction(0)) for some in zip(*rates.values(), strict=True))
        rates[ANY_DRAM] = out, back, both
        for dram in drams:
            some = rates if dram == ANY_DRAM else (dram,)
            for stage, length in enumerate(self._length):
                loads = [term for one in some for term in self._out[one][stage]]
                stores = [term for one in some for term in self._in[one][stage]]
                sides = (loads, stores, [*loads, *stores])
                for terms, rate in zip(sides, rates[dram], strict=True):
                    if terms and rate:
                        self._program.at_least(0.0, [(length, _up(rate)), *_negated(terms)])

    def _memories_hold_what_outlives_a_stage(self) -> None:
        if self._demands.on_chip is None:
            return
        for terms, fixed in zip(self._on_chip, self._fixed, strict=True):
            self._program.at_least(float(fixed - self._demands.on_chip), _negated(terms))


def _negated(terms: list[Term]) -> list[Term]:
    return [(variable, -factor) for variable, factor in terms]


def _up(number: Fraction) -> float:
    return nextafter(float(number), inf)


def _down(number: Fraction) -> float:
    return nextafter(float(number), 0.0)
