"""CDM: buffers placed in scratchpads, replicated or off chip, with the contention of links.

Venkataramani, Chan and Mitra, "Scratchpad-Memory Management for Multi-Threaded Applications on
Many-Core Architectures" (coordinated data management), ACM TECS 18(1), 2019, doi 10.1145/3301308.
Its equations, its iteration rule and its benchmarks could not be read: the program and the
algorithm here are a reconstruction from its abstract.

What is taken: private and shared data are told apart and placed at compile time, in the scratchpad
of a core or off chip; shared data is replicated in several scratchpads if that shortens the access
or the contention of links on XY routes; an exact program, and an iterative algorithm that scales.

What the paper leaves open, or has otherwise, and what is done here:

- Its threads are on given cores; here tasks are, by runs of neighbouring tiles of an operator.
- Its cores load and store single words; here what a task reads comes by transfers. Each reader
  gets a buffer from its home or from DRAM, for every task or once, as a replica of its own.
- The time of a wave of operators is that of its busiest core, work and transfers one after another,
  or of its busiest link: the contention. Waves follow each other as between barriers.
- Its variables seem to keep their places for the whole program; here for their whole lives.
- A move serves all who read a buffer from one place in one way.
- A buffer is written once here, so that replicas stay equal; nothing is overwritten in place. A
  home is sought among four of the scratchpads that use the buffer.
- Addresses are found afterwards; where there are none together, the largest of what is kept stays
  away from there.

Not taken: machines without exactly one DRAM, cores that work in DRAM, data that begins or ends in a
scratchpad, buffers without a transfer straight between DRAM and scratchpad, tasks whose streams do
not fit; and for ``cdm:ilp`` programs of more than 20,000 variables.

The program has a variable for each part. Each buffer has one home at most; those who read it in a
scratchpad get it from one place in one way, unless it has its home there; what is taken fits each
scratchpad at each event. A wave lasts as long as its busiest core: its tasks, and the transfers
that it waits for; and, with contention, as its busiest link. The sum over all waves is made small.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from spmilp.plan.plan import Plan
from spmilp.policies.cdm_accesses import Accesses, Event, Part, Placement, Role, Variable
from spmilp.policies.one_after_another import NotTakenError, OneAfterAnother, Policy, Setting
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import ConflictSet
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.milp.process import backend_name, run
from spmilp.solvers.exact.milp.program import Limits, Linear, Program, total
from spmilp.units import BufferIdx, MemoryIdx


class Improvement:
    """A placement, and what its moves gain.

    Parameters
    ----------
    apart
        Parts that no placement may have.
    """

    def __init__(self, accesses: Accesses, apart: Placement = frozenset()) -> None:
        self._accesses = accesses
        self._apart = apart
        variables = accesses.variables.values()
        self._moves = {one.buffer: tuple(dict.fromkeys(self._placements(one))) for one in variables}
        self.chosen = {one.buffer: one.off_chip for one in variables}
        self._used = accesses.used(accesses.off_chip())
        self._busy = accesses.base.copy()
        for placement in self.chosen.values():
            self._charge(Placement(), placement)

    def run(self, is_over: Callable[[], bool]) -> Placement:
        """Apply the best move of each buffer, round by round, until none gains."""
        gains = True
        while gains and not is_over():
            gains = False
            for buffer, moves in self._moves.items():
                if is_over():
                    break
                now = self.chosen[buffer]
                best = max(moves, key=partial(self._worth, now))
                if self._worth(now, best) > 0.0:
                    for event, blocks in self._more_blocks(now, best).items():
                        self._used[event] = self._used.get(event, 0) + blocks
                    self._charge(now, best)
                    self.chosen[buffer] = best
                    gains = True
        return frozenset().union(*self.chosen.values())

    def _worth(self, now: Placement, move: Placement) -> float:
        """Return the cycles that a move gains for each block that it takes more; 0 without room."""
        gain = self._gain(now, move)
        more = self._more_blocks(now, move) if gain > 0 else {}
        return gain / max(1, *more.values(), 1) if gain > 0 and self._has_room(more) else 0.0

    def _placements(self, one: Variable) -> Iterator[Placement]:
        """Yield placements in which all who read a buffer are served by one place in one way."""
        yield one.off_chip
        for home in (None, *one.homes):
            for role in (Role.STREAM, Role.REPLICA):
                found = self._served_from(one, home, role)
                if found.isdisjoint(self._apart):
                    yield found

    def _served_from(self, one: Variable, home: int | None, role: Role) -> Placement:
        """Return all readers served by a home, or by DRAM, in one way where that is possible."""
        source = self._accesses.setting.dram if home is None else home
        chosen = {one.homes[home]} if home is not None else set()
        for memory, parts in one.readers.items():
            if memory == home:
                continue
            able = [self._accesses.parts[part] for part in parts]
            near = [part for part in able if part.source == source] or able[:1]
            best = next((part for part in near if part.role is role), near[0])
            chosen.add(best.index)
            if best.needs is not None:
                chosen.add(best.needs)
        return frozenset(chosen)

    def _changes(self, now: Placement, move: Placement) -> Iterator[tuple[int, Part]]:
        parts = self._accesses.parts
        yield from ((-1, parts[index]) for index in now - move)
        yield from ((1, parts[index]) for index in move - now)

    def _gain(self, now: Placement, move: Placement) -> int:
        """Return the cycles that a move saves."""
        changes = list(self._changes(now, move))
        if not changes:
            return 0
        places = np.concatenate([part.places for _, part in changes])
        cycles = np.concatenate([sign * part.cycles for sign, part in changes])
        width = self._accesses.width
        waves, row = np.unique(places // width, return_inverse=True)
        rows = self._busy[waves]
        before = rows.max(axis=1).sum()
        np.add.at(rows.reshape(-1), row * width + places % width, cycles)
        return int(before - rows.max(axis=1).sum())

    def _more_blocks(self, now: Placement, move: Placement) -> Counter[Event]:
        more = Counter[Event]()
        for sign, part in self._changes(now, move):
            for event, blocks in part.blocks.items():
                more[event] += sign * blocks
        return more

    def _has_room(self, more: Mapping[Event, int]) -> bool:
        capacity = self._accesses.setting.tables.capacity
        return all(
            blocks <= 0
            or (limit := capacity[event[0]]) is None
            or self._used.get(event, 0) + blocks <= limit
            for event, blocks in more.items()
        )

    def _charge(self, now: Placement, move: Placement) -> None:
        for sign, part in self._changes(now, move):
            self._busy.reshape(-1)[part.places] += sign * part.cycles


class PlacementProgram:
    """The program of a problem's variables.

    Parameters
    ----------
    apart
        Parts that no placement may have.
    """

    def __init__(self, accesses: Accesses, apart: Placement = frozenset()) -> None:
        self._accesses = accesses
        self.program = Program()
        zero = Linear()
        self._chosen = [
            zero if part.index in apart else self.program.binary(part.role)
            for part in accesses.parts
        ]
        for one in accesses.variables.values():
            self._every_reader_is_served_once(one)
        self._memories_suffice()
        self._waves_last_as_long_as_what_is_busiest()

    def solve(self, limits: Limits) -> Placement | None:
        """Return the best placement that was found within the limits; ``None`` without any."""
        outcome = run(self.program, backend_name("highs"), limits)
        if outcome.interrupted and outcome.values is None:
            raise KeyboardInterrupt
        if outcome.values is None:
            return None
        values = outcome.values
        return frozenset(
            part
            for part, chosen in enumerate(self._chosen)
            if any(values[index] > 0.5 for index in chosen.terms)
        )

    def _every_reader_is_served_once(self, one: Variable) -> None:
        program, chosen, parts = self.program, self._chosen, self._accesses.parts
        program.at_most(total(chosen[home] for home in one.homes.values()), 1)
        for memory, able in one.readers.items():
            local = [one.homes[memory]] if memory in one.homes else []
            program.equal(total(chosen[part] for part in (*able, *local)), 1)
            for needed in {parts[part].needs for part in able} - {None}:
                some = [chosen[part] for part in able if parts[part].needs == needed]
                program.at_most(total(some), chosen[needed] if needed is not None else 1)

    def _memories_suffice(self) -> None:
        taken: dict[Event, list[Linear]] = defaultdict(list)
        for part, chosen in zip(self._accesses.parts, self._chosen, strict=True):
            for event, blocks in part.blocks.items():
                taken[event].append(blocks * chosen)
        for event, some in sorted(taken.items()):
            capacity = self._accesses.setting.tables.capacity[event[0]]
            if capacity is not None:
                fixed = self._accesses.fixed.get(event, 0)
                self.program.at_most(total((fixed, *some)), capacity)

    def _waves_last_as_long_as_what_is_busiest(self) -> None:
        accesses = self._accesses
        busy: dict[int, list[Linear]] = defaultdict(list)
        for part, chosen in zip(accesses.parts, self._chosen, strict=True):
            for place, cycles in zip(part.places.tolist(), part.cycles.tolist(), strict=True):
                busy[place].append(cycles * chosen)
        lasts = []
        for wave, row in enumerate(accesses.base.tolist()):
            first = wave * accesses.width
            sums = [total((own, *busy[first + r])) for r, own in enumerate(row)]
            longest = max(self.program.high(one) for one in sums)
            last = self.program.number(f"wave_{wave}", max(row), longest)
            for one in sums:
                self.program.at_least(last, one)
            lasts.append(last)
        self.program.objective = total(lasts)


MOST_PARTS = 20_000
"""Variables of the program, at most."""

NODES = 200
"""Limit on the nodes of HiGHS's search tree, where no time limit ends the search."""

SHARE_OF_PARTS = 0.35
"""Share of the time limit by which the parts of placements have been collected."""

SHARE = 0.7
"""Share of the time limit by which the search for a placement has ended."""


class Cdm(Policy):
    """Places buffers in scratchpads, in several where that pays, or off chip.

    Parameters
    ----------
    exact
        Find the placement by a 0/1 program instead of the iterative algorithm.
    """

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self.name = "cdm:ilp" if exact else "cdm:iterative"

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the placement; what has no addresses together is taken apart."""
        setting = Setting(context.problem, "cdm")
        accesses = Accesses(setting, lambda: context.clock.is_over(SHARE_OF_PARTS))
        if self._exact and len(accesses.parts) > MOST_PARTS:
            raise NotTakenError(
                f"cdm:ilp takes programs of {MOST_PARTS} variables; this one has "
                f"{len(accesses.parts)}; use cdm:iterative or larger tiles"
            )
        apart = self.forbidden(accesses)
        while True:
            placement = self._placement(context, accesses, apart)
            plan = taken_down(accesses, placement).plan()
            if isinstance(plan, Plan):
                break
            rival = _largest_rival(accesses, plan, placement)
            if rival is None:
                return context.unknown(f"{context.problem.name}: no addresses, all data off chip")
            apart |= {rival}
        chosen = [accesses.parts[index].role for index in placement]
        options = (
            ("homes", str(chosen.count(Role.HOME))),
            ("replicas", str(chosen.count(Role.REPLICA))),
            ("estimated_cycles", str(accesses.cost(placement))),
        )
        return self.answer(context, plan, options, keeps_transfers=True)

    def forbidden(self, accesses: Accesses) -> Placement:
        """Return parts that no placement may have: none. Comparisons with less forbid some."""
        return Placement()

    def _placement(self, context: SearchContext, accesses: Accesses, apart: Placement) -> Placement:
        """Return the best placement that is found; that of the iterative algorithm at least."""
        clock, best = context.clock, accesses.off_chip()
        with context.until_interrupted(lambda: True):
            best = Improvement(accesses, apart).run(lambda: clock.is_over(SHARE))
            if self._exact and not clock.is_over(SHARE):
                limits = Limits(
                    seconds=(seconds := clock.seconds_left(SHARE)),
                    threads=context.options.workers,
                    seed=context.options.seed,
                    nodes=NODES if seconds is None else None,
                )
                found = PlacementProgram(accesses, apart).solve(limits)
                if found is not None:
                    best = min((best, found), key=accesses.cost)
        return best


def _largest_rival(accesses: Accesses, found: ConflictSet, placement: Placement) -> int | None:
    """Return the largest of what is kept among those that have no addresses together."""
    kept = [
        part
        for item in found.items
        if isinstance(item, CandidateResidency)
        and (part := accesses.serving(item.slice, item.memory, placement)) is not None
        and part.role is not Role.STREAM
    ]
    size = accesses.setting.tables.blocks_of
    largest = max(
        kept, key=lambda part: (size(part.buffer, found.memory), part.index), default=None
    )
    return None if largest is None else largest.index


def taken_down(accesses: Accesses, placement: Placement) -> OneAfterAnother:
    """Write down what a placement says, step by step."""
    setting, written = accesses.setting, OneAfterAnother(accesses.setting)
    held: dict[tuple[BufferIdx, MemoryIdx], CandidateResidency] = {}
    parts = [accesses.parts[index] for index in placement]
    homes = {part.buffer: part.memory for part in parts if part.role is Role.HOME}

    def fetch(step: int, part: Part) -> Mapping[int, CandidateResidency]:
        """Return what serves each read of the buffer of a part."""
        buffer, memory, home = part.buffer, part.memory, homes.get(part.buffer)
        if home is not None and (buffer, home) not in held:
            held[buffer, home] = written.load(buffer, home)
        source = written.in_dram(buffer)
        if part.source not in (None, setting.dram):
            source = held[buffer, part.source]
        if part.role is Role.STREAM and part.source is not None:
            slices = accesses.streamed(step, buffer, part.source) or {}
            distinct = dict.fromkeys(slices.values())
            found = {one: written.copy(source, one, memory) for one in distinct}
            return {position: found[one] for position, one in slices.items()}
        if (buffer, memory) not in held:
            held[buffer, memory] = written.copy(source, buffer, memory)
        return dict.fromkeys(accesses.positions(step, buffer), held[buffer, memory])

    for step, task in enumerate(accesses.order):
        wanted, memory = setting.problem.tasks[task], setting.memories[task]
        served: dict[int, CandidateResidency] = {}
        for buffer in dict.fromkeys(map(setting.buffer_of, wanted.reads)):
            part = accesses.serving(buffer, memory, placement)
            if part is not None:
                served.update(fetch(step, part))
        results = written.run(task, [served[position] for position in range(len(wanted.reads))])
        for buffer, result in results.items():
            home, one = homes.get(buffer), accesses.variables.get(buffer)
            if home is not None:
                away = home != memory
                held[buffer, home] = written.copy(result, buffer, home) if away else result
            is_output = setting.problem.buffers[buffer].ends_in is not None
            if is_output or (one is not None and one.store in placement):
                written.store(result)
    return written
