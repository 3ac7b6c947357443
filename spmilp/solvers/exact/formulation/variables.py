"""The variables of the model; every solver object stays inside this package."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.exact.formulation.candidates import CandidateResidency, Lifecycle, Structure
from spmilp.solvers.exact.formulation.extraction import Item
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.units import Cycles, LinkIdx, MemoryIdx, TaskIdx

Literal: TypeAlias = Any
"""A Boolean variable, its negation, or a constant."""

Number: TypeAlias = Any
"""A variable, a constant, or a sum of them."""

Interval: TypeAlias = Any
"""An interval variable."""

Choice: TypeAlias = tuple[CandidateResidency, TransferOption]
"""A residency with a transfer that may fill it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVars:
    """When a task runs and in which pool.

    Parameters
    ----------
    size
        Cycles, those of remote reads included.
    pools, memories
        Whether it runs in each of them.
    runs
        Its interval in each pool, present when it runs there.
    """

    start: Number
    size: Number
    end: Number
    pools: dict[int, Literal]
    memories: dict[MemoryIdx, Literal]
    runs: dict[int, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidencyVars:
    """A residency that may exist.

    Parameters
    ----------
    start, valid
        When it begins (with what fills it), and when what fills it has ended.
    end
        Until when its bytes are its own; ``None`` for a lasting one. For the operand of a pair in
        place this is the start of the task, from where on the result has the bytes.
    moved
        Whether a transfer of its own fills it.
    sources, late_sources
        The residency that this transfer reads, and whether it does so late.
    options
        Which transfer it is.
    cycles
        How long it takes.
    transfer
        Its interval, whichever it is; ``None`` without any.
    roots
        The multicasts that fill it instead, by the residency to which their transfer belongs.
    """

    lifecycle: Lifecycle
    present: Literal
    start: Number
    valid: Number
    end: Number | None
    moved: Literal
    sources: dict[CandidateResidency, Literal]
    late_sources: dict[CandidateResidency, Literal]
    options: dict[TransferOption, Literal]
    cycles: Number
    transfer: Interval | None
    roots: dict[CandidateResidency, Literal]

    @property
    def key(self) -> CandidateResidency:
        """Which candidate it is."""
        return self.lifecycle.key

    def all_sources(self) -> list[tuple[CandidateResidency, Literal]]:
        """Return the residencies that its transfer may read, late or not."""
        return [*self.sources.items(), *self.late_sources.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadVars:
    """The residencies that serve one read; ``late`` for those that do so late."""

    on: dict[CandidateResidency, Literal]
    late: dict[CandidateResidency, Literal]

    def servers(self) -> list[tuple[CandidateResidency, Literal]]:
        """Return all of them."""
        return [*self.on.items(), *self.late.items()]


class Variables:
    """All variables of a structure, with domains from 0 to a horizon.

    Parameters
    ----------
    horizon
        A cycle by which the plans that are looked for have ended.

    Attributes
    ----------
    lengths
        How long residencies have bytes of their own, where the model asks.
    unions
        Whether a transfer is one of several options.
    in_place
        Whether a task writes a result over an operand.
    offsets
        The first block of what has an address in the model.
    least_rates, extra_links
        Of multicasts: the rate that a root's transfer holds at the least, and the links that its
        further branches hold.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        tables: ProblemTables,
        structure: Structure,
        horizon: Cycles,
    ) -> None:
        self.model = model
        self.tables = tables
        self.structure = structure
        self.horizon = horizon
        self.true: Literal = model.new_constant(1)
        self.makespan: Number = model.new_int_var(0, horizon, "makespan")
        self.tasks: tuple[TaskVars, ...] = tuple(
            self._task(task.index) for task in tables.problem.tasks
        )
        self._roots = {root for one in structure.lifecycles.values() for root, _ in one.roots}
        self.residencies: dict[CandidateResidency, ResidencyVars] = {
            key: self._residency(lifecycle, key in self._roots)
            for key, lifecycle in structure.lifecycles.items()
        }
        self.reads: dict[tuple[TaskIdx, int], ReadVars] = {
            key: self._read(key, servers) for key, servers in structure.servers.items()
        }
        self._transfers: dict[tuple[CandidateResidency, frozenset[TransferOption]], Interval] = {}
        self.unions: dict[tuple[CandidateResidency, frozenset[TransferOption]], Literal] = {}
        self.lengths: dict[CandidateResidency, Number] = {}
        self.in_place: dict[tuple[TaskIdx, CandidateResidency, CandidateResidency], Literal] = {}
        self.offsets: dict[tuple[MemoryIdx, Item], Number] = {}
        self.least_rates: dict[Choice, Fraction] = {}
        self.extra_links: dict[Choice, dict[LinkIdx, Literal]] = {}

    def literal(self, name: str) -> Literal:
        """Return a new literal."""
        return self.model.new_bool_var(name)

    def cycle(self, name: str) -> Number:
        """Return a new cycle within the horizon."""
        return self.model.new_int_var(0, self.horizon, name)

    def rate(self, key: CandidateResidency, option: TransferOption) -> Fraction:
        """Return the bytes per cycle that a transfer holds on its links for certain."""
        return self.least_rates.get((key, option), option.rate)

    def transfer_by(self, key: CandidateResidency, options: frozenset[TransferOption]) -> Interval:
        """Return the interval of a residency's transfer, there if it is one of some options."""
        residency = self.residencies[key]
        if len(options) == len(residency.options):
            return residency.transfer
        if (key, options) not in self._transfers:
            able = [taken for option, taken in residency.options.items() if option in options]
            either = able[0]
            if len(able) > 1:
                either = self.literal(f"{key} by one of {len(options)}")
                self.model.add(sum(able) == either)
                self.unions[key, options] = either
            lengths = {option.cycles for option in options}
            is_fixed = len(lengths) == 1 and key not in self._roots
            cycles = lengths.pop() if is_fixed else residency.cycles
            self._transfers[key, options] = self.model.new_optional_interval_var(
                residency.start, cycles, residency.valid, either, f"{key} by {len(options)}"
            )
        return self._transfers[key, options]

    def _task(self, task: TaskIdx) -> TaskVars:
        model, tables, name = self.model, self.tables, f"task{task}"
        pools = self.structure.scope.pools[task]
        chosen: dict[int, Literal] = {p: self.literal(f"{name} in pool{p}") for p in pools}
        if len(pools) == 1:
            chosen = {pools[0]: self.true}
        else:
            model.add_exactly_one(chosen.values())
        least = {pool: tables.cycles_on(task, pool) for pool in pools}
        start, size = self.cycle(f"{name} start"), self._size(task, set(least.values()))
        end = start + size if isinstance(size, int) else self.cycle(f"{name} end")
        runs: dict[int, Interval] = {}
        for pool, literal in chosen.items():
            length: Number = size
            if tables.machine.remote is None:
                length = least[pool]
            if not isinstance(size, int) and isinstance(length, int):
                model.add(size == length).only_enforce_if(literal)
            runs[pool] = model.new_optional_interval_var(
                start, length, end, literal, f"{name} run{pool}"
            )
        memories = self._memories(task, chosen)
        return TaskVars(start=start, size=size, end=end, pools=chosen, memories=memories, runs=runs)

    def _size(self, task: TaskIdx, lengths: set[Cycles]) -> Number:
        """Return a constant when the task takes equally long everywhere."""
        reads_remotely = self.tables.machine.remote is not None
        if len(lengths) == 1 and not (reads_remotely and self.tables.problem.tasks[task].reads):
            return next(iter(lengths))
        longest = self.horizon if reads_remotely else max(lengths)
        return self.model.new_int_var(min(lengths), longest, f"task{task} size")

    def _memories(self, task: TaskIdx, chosen: dict[int, Literal]) -> dict[MemoryIdx, Literal]:
        found: dict[MemoryIdx, list[Literal]] = {}
        for pool, literal in chosen.items():
            found.setdefault(self.tables.pools[pool].memory, []).append(literal)
        if len(found) == 1:
            return dict.fromkeys(found, self.true)
        memories = {}
        for memory, literals in found.items():
            memories[memory] = literals[0]
            if len(literals) > 1:
                memories[memory] = self.literal(f"task{task} in memory{memory}")
                self.model.add(sum(literals) == memories[memory])
        return memories

    def _residency(self, one: Lifecycle, is_root: bool) -> ResidencyVars:
        name = f"slice{one.key.slice} memory{one.key.memory} number{one.key.number}"
        fills = (one.writer is not None) + bool(one.sources) + len(one.roots)
        present: Literal = self.true
        start: Number = 0
        valid: Number = 0
        moved: Literal = self.model.new_constant(0)
        if not one.initial and fills == 1 and one.writer is not None:
            task = self.tasks[one.writer]
            present = task.memories[one.key.memory]
            start, valid = task.start, task.end
        elif not one.initial:
            present, start = self.literal(name), self.cycle(f"{name} start")
            valid = self._valid(name, one, start, is_root)
            if one.sources:
                moved = present if fills == 1 else self.literal(f"{name} moved")
        end = None if one.lasting else self.cycle(f"{name} end")
        open_ones = [key for key in one.sources if self.structure.lifecycles[key].open]
        is_only = len(one.sources) == 1 and not open_ones
        sources = {s: moved if is_only else self.literal(f"{name} from {s}") for s in one.sources}
        late = {key: self.literal(f"{name} late from {key}") for key in open_ones}
        options = {
            option: moved if len(one.options) == 1 else self.literal(f"{name} by {option.engine}")
            for option in one.options
        }
        cycles = self._cycles(name, one, is_root)
        for option, literal in options.items():
            if not is_root and not isinstance(cycles, int):
                self.model.add(cycles == option.cycles).only_enforce_if(literal)
        return ResidencyVars(
            lifecycle=one,
            present=present,
            start=start,
            valid=valid,
            end=end,
            moved=moved,
            sources=sources,
            late_sources=late,
            options=options,
            cycles=cycles,
            transfer=self.model.new_optional_interval_var(start, cycles, valid, moved, name)
            if options
            else None,
            roots={root: self.literal(f"{name} with {root}") for root, _ in one.roots},
        )

    def _valid(self, name: str, one: Lifecycle, start: Number, is_root: bool) -> Number:
        """Return an expression of the start when every filling takes equally long."""
        cycles = {option.cycles for option in one.options}
        if len(cycles) == 1 and one.writer is None and not one.roots and not is_root:
            return start + cycles.pop()
        return self.cycle(f"{name} valid")

    def _cycles(self, name: str, one: Lifecycle, is_root: bool) -> Number:
        """Return how long a transfer takes; a multicast takes as long as all its members need."""
        found = {option.cycles for option in one.options}
        if len(found) <= 1 and not is_root:
            return max(found, default=0)
        longest = self.horizon if is_root else max(found)
        return self.model.new_int_var(min(found, default=0), longest, f"{name} cycles")

    def _read(self, key: tuple[TaskIdx, int], servers: tuple[CandidateResidency, ...]) -> ReadVars:
        name = f"task{key[0]} read{key[1]}"
        open_ones = [server for server in servers if self.structure.lifecycles[server].open]
        if len(servers) == 1 and not open_ones:
            return ReadVars(on={servers[0]: self.true}, late={})
        return ReadVars(
            on={server: self.literal(f"{name} from {server}") for server in servers},
            late={server: self.literal(f"{name} late from {server}") for server in open_ones},
        )
