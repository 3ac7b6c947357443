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
- A buffer is written once here, so that replicas stay equal. A home is sought among four of the
  scratchpads that use the buffer, and for private data two more near by.
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

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from spmilp.plan.plan import Plan
from spmilp.policies.cdm_accesses import Accesses, Event, Part, Placement, Role, Step, Variable
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    made_short,
    the_dram,
)
from spmilp.policies.onsram import cores_of
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.addresses import ConflictSet
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.exact.milp.process import backend_name, run
from spmilp.solvers.exact.milp.program import Limits, Linear, Program, total
from spmilp.solvers.schedule.kernels.records import Ints, numbers
from spmilp.units import BufferIdx, MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """What placements may make use of; less of it for comparisons.

    Parameters
    ----------
    private, shared
        Whether buffers that one scratchpad's tasks use, or those of several, may be on chip.
    replication
        Whether a buffer may lie in several scratchpads.
    contention
        Whether the time of links is known.
    """

    private: bool = True
    shared: bool = True
    replication: bool = True
    contention: bool = True

    def allows(self, accesses: Accesses, index: int) -> bool:
        """Say whether a placement may have a part."""
        part = accesses.parts[index]
        if part.role is Role.STORE or (part.role is Role.STREAM and part.source == accesses.dram):
            return True
        is_shared = accesses.uses.is_shared(part.buffer)
        if not (self.shared if is_shared else self.private):
            return False
        return self.replication or part.role is not Role.REPLICA


class Improvement:
    """A placement, and what its moves gain."""

    def __init__(self, accesses: Accesses, freedom: Freedom, apart: Placement) -> None:
        self._accesses = accesses
        count = accesses.base.shape[1] if freedom.contention else accesses.cores
        self._busy = accesses.base[:, :count].copy()
        self._used: dict[Event, int] = dict(accesses.fixed)
        self._allowed = [
            part.index not in apart and freedom.allows(accesses, part.index)
            for part in accesses.parts
        ]
        self._charges: dict[int, tuple[Ints, Ints]] = {}
        self._whole: dict[BufferIdx, tuple[Placement, ...]] = {}
        self.chosen = {one.buffer: frozenset[int]() for one in accesses.variables.values()}
        for one in accesses.variables.values():
            self._exchange(one, one.off_chip)

    def run(self, is_over: Callable[[], bool]) -> Placement:
        """Apply the best move of each buffer, best first, round by round, until none gains."""
        gains = True
        while gains and not is_over():
            gains = False
            for _, buffer, move in sorted(self._best_moves(is_over), key=lambda found: found[:2]):
                one, now = self._accesses.variables[buffer], self.chosen[buffer]
                if is_over():
                    # What was found in time is applied as far as it still gains.
                    best = move if self._gain(now, move) > 0 else now
                else:
                    _, best = self._best_move(one)
                if best != now and self._has_room(self._more_blocks(now, best)):
                    self._exchange(one, best)
                    gains = True
        return frozenset().union(*self.chosen.values())

    def _best_moves(
        self, is_over: Callable[[], bool]
    ) -> Iterator[tuple[float, BufferIdx, Placement]]:
        for buffer, one in self._accesses.variables.items():
            if is_over():
                return
            ratio, move = self._best_move(one)
            if ratio > 0.0:
                yield -ratio, buffer, move

    def _best_move(self, one: Variable) -> tuple[float, Placement]:
        """Return the move with most cycles gained for each block that it takes more, and these."""
        now = self.chosen[one.buffer]
        best = 0.0, now
        for move in dict.fromkeys(self._moves(one, now)):
            gain = self._gain(now, move)
            if gain <= 0:
                continue
            more = self._more_blocks(now, move)
            ratio = gain / max(1, 1, *more.values())
            if ratio > best[0] and self._has_room(more):
                best = ratio, move
        return best

    def _moves(self, one: Variable, now: Placement) -> Iterator[Placement]:
        """Yield placements of one buffer: another home, each or all who read it served anew."""
        if one.buffer not in self._whole:
            self._whole[one.buffer] = tuple(self._for_all_readers(one))
        yield from self._whole[one.buffer]
        home = next((m for m, part in one.homes.items() if part in now), None)
        for memory, parts in one.readers.items():
            if memory == home:
                continue
            others = now.difference(parts)
            for part in parts:
                needs = self._accesses.parts[part].needs
                if self._allowed[part] and (needs is None or needs in now or needs == one.store):
                    changed = others | {part} | ({needs} if needs is not None else set())
                    yield self._without_idle_store(one, changed)

    def _for_all_readers(self, one: Variable) -> Iterator[Placement]:
        """Yield placements in which all who read a buffer are served by one place in one way."""
        yield one.off_chip
        for home in (None, *one.homes):
            for role in (Role.STREAM, Role.REPLICA):
                found = self._served_from(one, home, role)
                if all(self._allowed[part] for part in found):
                    yield found

    def _without_idle_store(self, one: Variable, placement: Placement) -> Placement:
        """Leave out the copy in DRAM if nobody gets it from there."""
        if any(self._accesses.parts[part].needs == one.store for part in placement):
            return placement
        return placement - {one.store}

    def _served_from(self, one: Variable, home: int | None, role: Role) -> Placement:
        """Return all readers served by a home, or by DRAM, in one way where that is possible."""
        source = self._accesses.dram if home is None else home
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

    def _charges_of(self, part: int) -> tuple[Ints, Ints]:
        """Return where in the table of busy cycles a part adds how many."""
        if part not in self._charges:
            width = self._busy.shape[1]
            known = [one for one in self._accesses.parts[part].charges if one.resource < width]
            places = numbers(one.wave * width + one.resource for one in known)
            self._charges[part] = places, numbers(one.cycles for one in known)
        return self._charges[part]

    def _gain(self, now: Placement, move: Placement) -> int:
        """Return the cycles that a move saves."""
        changes = [(*self._charges_of(part), -1) for part in now - move]
        changes += [(*self._charges_of(part), 1) for part in move - now]
        if not changes:
            return 0
        places = np.concatenate([one[0] for one in changes])
        waves = np.unique(places // self._busy.shape[1])
        rows = self._busy[waves]
        before = rows.max(axis=1).sum()
        at = np.searchsorted(waves, places // self._busy.shape[1]) * self._busy.shape[1]
        cycles = np.concatenate([sign * cycles for _, cycles, sign in changes])
        np.add.at(rows.reshape(-1), at + places % self._busy.shape[1], cycles)
        return int(before - rows.max(axis=1).sum())

    def _more_blocks(self, now: Placement, move: Placement) -> dict[Event, int]:
        parts, more = self._accesses.parts, dict[Event, int]()
        for sign, some in ((-1, now - move), (1, move - now)):
            for index in some:
                for event, blocks in parts[index].blocks.items():
                    more[event] = more.get(event, 0) + sign * blocks
        return more

    def _has_room(self, more: Mapping[Event, int]) -> bool:
        capacity = self._accesses.tables.capacity
        for event, blocks in more.items():
            limit = capacity[event[0]]
            if blocks > 0 and limit is not None and self._used.get(event, 0) + blocks > limit:
                return False
        return True

    def _exchange(self, one: Variable, move: Placement) -> None:
        now, busy = self.chosen[one.buffer], self._busy.reshape(-1)
        for event, blocks in self._more_blocks(now, move).items():
            self._used[event] = self._used.get(event, 0) + blocks
        for sign, some in ((-1, now - move), (1, move - now)):
            for part in some:
                places, cycles = self._charges_of(part)
                np.add.at(busy, places, sign * cycles)
        self.chosen[one.buffer] = move


class PlacementProgram:
    """The program of a problem's variables.

    Parameters
    ----------
    apart
        Parts that no placement may have.
    """

    def __init__(
        self, accesses: Accesses, freedom: Freedom, apart: Placement = frozenset()
    ) -> None:
        self._accesses = accesses
        self.program = Program()
        zero = Linear()
        self._chosen = [
            self.program.binary(part.role)
            if freedom.allows(accesses, part.index) and part.index not in apart
            else zero
            for part in accesses.parts
        ]
        for one in accesses.variables.values():
            self._every_reader_is_served_once(one)
        self._memories_suffice()
        self._waves_last_as_long_as_what_is_busiest(contention=freedom.contention)

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
            capacity = self._accesses.tables.capacity[event[0]]
            if capacity is not None:
                fixed = self._accesses.fixed.get(event, 0)
                self.program.at_most(total((fixed, *some)), capacity)

    def _waves_last_as_long_as_what_is_busiest(self, *, contention: bool) -> None:
        accesses = self._accesses
        waves, resources = accesses.base.shape
        count = resources if contention else accesses.cores
        busy: dict[tuple[int, int], list[Linear]] = defaultdict(list)
        for part, chosen in zip(accesses.parts, self._chosen, strict=True):
            for wave, resource, cycles in part.charges:
                if resource < count:
                    busy[wave, resource].append(cycles * chosen)
        lasts = []
        for wave in range(waves):
            base = accesses.base[wave, :count]
            sums = [total((int(base[r]), *busy.get((wave, r), ()))) for r in range(count)]
            longest = max(self.program.high(one) for one in sums)
            last = self.program.number(f"wave_{wave}", int(base.max()), longest)
            for one in sums:
                self.program.at_least(last, one)
            lasts.append(last)
        self.program.objective = total(lasts)


MOST_PARTS = 20_000
"""Variables of the program, at most."""

NODES = 200
"""Of the search tree of HiGHS, where no time limit ends the search."""

SHARE_OF_PARTS = 0.35
"""Of the time limit, by which it is known what placements can be made of."""

SHARE = 0.7
"""Of the time limit, by which the search for a placement has ended."""


class Cdm(Solver):
    """Places buffers in scratchpads, in several where that pays, or off chip.

    Parameters
    ----------
    exact
        Find the placement by a 0/1 program instead of the iterative algorithm.
    freedom
        What placements may make use of.
    """

    def __init__(self, *, exact: bool, freedom: Freedom | None = None) -> None:
        self._exact = exact
        self._freedom = freedom or Freedom()
        self.name = "cdm:ilp" if exact else "cdm:iterative"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the placement; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return self._search(context)
        except NotTakenError as error:
            return context.unknown(str(error))

    def _search(self, context: SearchContext) -> SolverResult:
        tables = ProblemTables(context.problem)
        cores = cores_of(tables)
        dram = the_dram(context.problem, "cdm")
        accesses = Accesses(tables, cores, dram, lambda: context.clock.is_over(SHARE_OF_PARTS))
        if self._exact and len(accesses.parts) > MOST_PARTS:
            raise NotTakenError(
                f"cdm:ilp takes programs of {MOST_PARTS} variables; this one has "
                f"{len(accesses.parts)}; use cdm:iterative or larger tiles"
            )
        apart: Placement = frozenset()
        while True:
            placement = self._placement(context, accesses, apart)
            decisions = _taken_down(accesses, placement).decisions()
            plan = addressed(tables, decisions, dict(enumerate(cores)), context.fast_bound)
            if isinstance(plan, Plan):
                break
            rival = _largest_rival(accesses, plan, placement)
            if rival is None:
                return context.unknown(f"{context.problem.name}: no addresses, all data off chip")
            apart |= {rival}
        bound = context.bound
        plan = made_short(context, plan, keeps_transfers=True)
        context.report(context.values(plan)[0], bound.value, self.name)
        return context.found(plan, bound, self.name, _options(accesses, placement))

    def _placement(self, context: SearchContext, accesses: Accesses, apart: Placement) -> Placement:
        """Return the best placement that is found; that of the iterative algorithm at least."""
        clock, contention = context.clock, self._freedom.contention
        best = accesses.off_chip()
        with context.until_interrupted(lambda: True):
            improvement = Improvement(accesses, self._freedom, apart)
            best = improvement.run(lambda: clock.is_over(SHARE))
            if self._exact and not clock.is_over(SHARE):
                limits = Limits(
                    seconds=(seconds := clock.seconds_left(SHARE)),
                    threads=context.options.workers,
                    seed=context.options.seed,
                    nodes=NODES if seconds is None else None,
                )
                found = PlacementProgram(accesses, self._freedom, apart).solve(limits)
                if found is not None:
                    best = min(
                        (best, found), key=lambda one: accesses.cost(one, contention=contention)
                    )
        return best


def _options(accesses: Accesses, placement: Placement) -> tuple[tuple[str, str], ...]:
    chosen = [accesses.parts[index].role for index in placement]
    return (
        ("homes", str(chosen.count(Role.HOME))),
        ("replicas", str(chosen.count(Role.REPLICA))),
        ("estimated_cycles", str(accesses.cost(placement))),
    )


def _largest_rival(accesses: Accesses, found: ConflictSet, placement: Placement) -> int | None:
    """Return the largest of what is kept among those that have no addresses together."""
    kept = [
        part
        for item in found.items
        if isinstance(item, CandidateResidency)
        and (part := accesses.serving(item.slice, item.memory, placement)) is not None
        and part.role is not Role.STREAM
    ]
    size = accesses.tables.blocks_of
    largest = max(
        kept, key=lambda part: (size(part.buffer, found.memory), part.index), default=None
    )
    return None if largest is None else largest.index


def _taken_down(accesses: Accesses, placement: Placement) -> OneAfterAnother:
    return _Writer(accesses, placement).written()


class _Writer:
    def __init__(self, accesses: Accesses, placement: Placement) -> None:
        self._accesses = accesses
        self._placement = placement
        self._written = OneAfterAnother(accesses.tables, accesses.dram)
        self._held: dict[tuple[BufferIdx, MemoryIdx], CandidateResidency] = {}
        self._homes = {
            part.buffer: part.memory
            for part in map(accesses.parts.__getitem__, placement)
            if part.role is Role.HOME
        }

    def written(self) -> OneAfterAnother:
        """Take all steps down."""
        for number, step in enumerate(self._accesses.steps):
            operands, overwritten = self._operands(number, step)
            results = self._written.run(step.task, step.pool, operands)
            for position, buffer in step.overwrites:
                if position in overwritten:
                    self._written.overwrite(step.task, operands[position], results[buffer])
            for buffer, result in results.items():
                self._send(buffer, result, step.memory)
        return self._written

    def _operands(self, number: int, step: Step) -> tuple[list[CandidateResidency], frozenset[int]]:
        """Fetch what is not there; return what serves each read, and which results take over."""
        problem = self._accesses.tables.problem
        reads = problem.tasks[step.task].reads
        served: dict[int, CandidateResidency] = {}
        overwritten: set[int] = set()
        for buffer in dict.fromkeys(problem.slices[read].buffer for read in reads):
            part = self._accesses.serving(buffer, step.memory, self._placement)
            if part is None:
                continue
            served.update(self._fetched(number, part))
            overwritten |= {position for at, position in part.given if at == number}
        return [served[position] for position in range(len(reads))], frozenset(overwritten)

    def _fetched(self, number: int, part: Part) -> Mapping[int, CandidateResidency]:
        """Return what serves each read of the buffer of a part."""
        buffer, memory = part.buffer, part.memory
        home = self._homes.get(buffer)
        if home is not None and (buffer, home) not in self._held:
            self._held[buffer, home] = self._written.load(buffer, home)
        source = self._written.in_dram(buffer)
        if part.source is not None and part.source != self._accesses.dram:
            source = self._held[buffer, part.source]
        if part.role is Role.STREAM and part.source is not None:
            slices = self._accesses.uses.streamed(number, buffer, part.source) or {}
            found = {
                one: self._written.copy(source, one, memory)
                for one in dict.fromkeys(slices.values())
            }
            return {position: found[one] for position, one in slices.items()}
        if (buffer, memory) not in self._held:
            self._held[buffer, memory] = self._written.copy(source, buffer, memory)
        return dict.fromkeys(
            self._accesses.uses.positions(number, buffer), self._held[buffer, memory]
        )

    def _send(self, buffer: BufferIdx, result: CandidateResidency, memory: MemoryIdx) -> None:
        """Bring a result home, and to DRAM if it has to be there."""
        home = self._homes.get(buffer)
        if home == memory:
            self._held[buffer, home] = result
        elif home is not None:
            self._held[buffer, home] = self._written.copy(result, buffer, home)
        one = self._accesses.variables.get(buffer)
        is_output = self._accesses.tables.problem.buffers[buffer].ends_in is not None
        if is_output or (one is not None and one.store in self._placement):
            self._written.store(result)
