"""The variables of the model; every solver object stays inside this package."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.exact.formulation.candidates import (
    PERMANENT,
    CandidateResidency,
    Lifecycle,
    Structure,
)
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

Options: TypeAlias = frozenset[TransferOption]
"""Some of the transfers that may fill a residency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVars:
    """When a task runs and in which pool.

    ``size`` is its cycles, those of remote reads included. ``pools`` and ``memories`` say whether
    it runs in each of them; ``runs`` is its interval in each pool, present when it runs there.
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
        Its interval until it has arrived, whichever it is; ``None`` without any.
    sending, sent
        The cycles from its start until all is sent, and when that is.
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
    sending: Number
    sent: Number
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

    Plans that are looked for have ended by the ``horizon``. ``lengths`` say how long residencies
    have bytes of their own, where the model asks; ``unions`` whether a transfer is one of several
    options; ``in_place`` whether a task writes a result over an operand. ``offsets`` are the first
    block of what has an address in the model. Of multicasts, ``least_rates`` are those that a
    root's transfer holds at the least, and ``extra_links`` the links that its further branches
    hold.
    """

    def __init__(
        self, model: cp_model.CpModel, tables: ProblemTables, structure: Structure, horizon: Cycles
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
        self._intervals: dict[tuple[CandidateResidency, Options, Cycles, bool], Interval] = {}
        self.unions: dict[tuple[CandidateResidency, Options], Literal] = {}
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

    def on_channel(self, key: CandidateResidency, options: Options) -> Interval:
        """Return when a transfer holds its channel, if it is one of some options of an engine."""
        engine = self.tables.machine.engines[next(iter(options)).engine]
        return self._interval(key, options, 0, until_sent=engine.pipelined)

    def on_links(self, key: CandidateResidency, options: Options) -> Interval:
        """Return when a transfer holds a link, if it is one of some options of one rate on it."""
        return self._interval(key, options, next(iter(options)).on_links, until_sent=True)

    def _interval(
        self, key: CandidateResidency, options: Options, begin: Cycles, *, until_sent: bool
    ) -> Interval:
        """Return an interval from some cycles after a transfer's start, there if it is an option.

        Until all is sent, or until it has arrived.
        """
        residency = self.residencies[key]
        until_sent = until_sent and residency.sent is not residency.valid
        if not (begin or until_sent) and len(options) == len(residency.options):
            return residency.transfer
        named = key, options, begin, until_sent
        if named not in self._intervals:
            length, end = residency.cycles, residency.valid
            if until_sent:
                length, end = residency.sending, residency.sent
            lengths = {option.sent if until_sent else option.cycles for option in options}
            if len(lengths) == 1 and key not in self._roots:
                length = lengths.pop()
            begins, either = residency.start + begin, self._either(key, options)
            self._intervals[named] = self.model.new_optional_interval_var(
                begins, length - begin, end, either, f"{key} by {len(options)}"
            )
        return self._intervals[named]

    def _either(self, key: CandidateResidency, options: Options) -> Literal:
        """Return a literal that says whether a transfer is one of some options."""
        residency = self.residencies[key]
        if len(options) == len(residency.options):
            return residency.moved
        able = [taken for option, taken in residency.options.items() if option in options]
        if len(able) == 1:
            return able[0]
        if (key, options) not in self.unions:
            either = self.unions[key, options] = self.literal(f"{key} by one of {len(options)}")
            self.model.add(sum(able) == either)
        return self.unions[key, options]

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
        if one.key.number == PERMANENT:
            present = self.literal(name)
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
        taken = options.items()
        cycles = self._length(f"{name} cycles", [(o.cycles, t) for o, t in taken], is_root)
        sending, sent = cycles, valid
        if is_root or any(option.sent < option.cycles for option in options):
            sending = self._length(f"{name} sending", [(o.sent, t) for o, t in taken], is_root)
            sent = start + sending
            if not isinstance(sending, int):
                sent = self.cycle(f"{name} sent")
                self.model.add(sent == start + sending).only_enforce_if(moved)
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
            sending=sending,
            sent=sent,
            roots={root: self.literal(f"{name} with {root}") for root, _ in one.roots},
        )

    def _valid(self, name: str, one: Lifecycle, start: Number, is_root: bool) -> Number:
        """Return an expression of the start when every filling takes equally long."""
        cycles = {option.cycles for option in one.options}
        if len(cycles) == 1 and one.writer is None and not one.roots and not is_root:
            return start + cycles.pop()
        return self.cycle(f"{name} valid")

    def _length(self, name: str, taken: list[tuple[Cycles, Literal]], is_root: bool) -> Number:
        """Return how long a transfer takes; a multicast takes as long as all its members need."""
        lengths = {cycles for cycles, _ in taken}
        if len(lengths) <= 1 and not is_root:
            return max(lengths, default=0)
        longest = max(self.horizon, *lengths) if is_root else max(lengths)
        length = self.model.new_int_var(min(lengths), longest, name)
        for cycles, literal in taken if not is_root else ():
            self.model.add(length == cycles).only_enforce_if(literal)
        return length

    def _read(self, key: tuple[TaskIdx, int], servers: tuple[CandidateResidency, ...]) -> ReadVars:
        name = f"task{key[0]} read{key[1]}"
        open_ones = [server for server in servers if self.structure.lifecycles[server].open]
        if len(servers) == 1 and not open_ones:
            return ReadVars(on={servers[0]: self.true}, late={})
        return ReadVars(
            on={server: self.literal(f"{name} from {server}") for server in servers},
            late={server: self.literal(f"{name} late from {server}") for server in open_ones},
        )
