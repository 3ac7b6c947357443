"""The families of constraints: what a plan is. The list in ``add_all`` is the table of contents."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import lcm
from typing import NamedTuple, TypeVar

from spmilp.machine.routes import transfer_cycles, transfer_rate
from spmilp.plan.plan import MOST_INSTANCES
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.capacity import CapacityModel
from spmilp.solvers.exact.formulation.circular import CircularModel
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.exact.formulation.variables import (
    Interval,
    Literal,
    Number,
    ResidencyVars,
    Variables,
)
from spmilp.units import Cycles, EngineIdx, LinkIdx

K = TypeVar("K")


class _Branch(NamedTuple):
    """The part of a multicast to one of its members, if that joins."""

    joins: Literal
    sent: Cycles
    latency: Cycles
    links: tuple[LinkIdx, ...]
    rate: Fraction


def _add_multicasts(variables: Variables) -> None:
    """Tie members to their roots, and lengthen the roots' transfers.

    A transfer with several destinations belongs to the residency in the lowest memory among these,
    the *root*; the others are its *members*. All is sent after ``set-up + most cycles of moving``,
    for the rate of a multicast is the least of its routes' rates, and has arrived when the greatest
    latency is over, too. It holds one channel, and each link of the union of the routes once. Where
    the routes of one engine have different rates, a multicast holds more than it needs in a model
    of plans: the root's own rate. In a relaxation it holds the least.
    """
    roots: dict[CandidateResidency, list[ResidencyVars]] = defaultdict(list)
    for member in variables.residencies.values():
        for root, options in member.lifecycle.roots:
            roots[root].append(member)
            _tie(variables, member, variables.residencies[root], options)
    for key, members in roots.items():
        multicast = variables.residencies[key]
        for option in multicast.options:
            _lengthen(variables, multicast, option, members)
        _one_in_each_memory(variables, multicast, members)


def _tie(
    variables: Variables,
    member: ResidencyVars,
    root: ResidencyVars,
    options: tuple[TransferOption, ...],
) -> None:
    """A member begins and is valid with its root, whose transfer is one that serves both."""
    model, joins = variables.model, member.roots[root.key]
    model.add_implication(joins, root.moved)
    model.add(member.start == root.start).only_enforce_if(joins)
    model.add(member.valid == root.valid).only_enforce_if(joins)
    for option, taken in root.options.items():
        if option not in options:
            model.add_bool_or([~joins, ~taken])


def _one_in_each_memory(
    variables: Variables, root: ResidencyVars, members: list[ResidencyVars]
) -> None:
    """The destinations of a transfer lie in different memories."""
    memories: dict[int, list[Literal]] = defaultdict(list)
    for member in members:
        memories[member.key.memory].append(member.roots[root.key])
    for literals in memories.values():
        if len(literals) > 1:
            variables.model.add_at_most_one(literals)


def _lengthen(
    variables: Variables, root: ResidencyVars, option: TransferOption, members: list[ResidencyVars]
) -> None:
    """Let the transfer last as long as its longest part, and hold the links of all parts.

    At least: what takes longer than it has to is shorter in the plan, which does no harm.
    """
    model, key, taken = variables.model, root.key, root.options[option]
    branches = [
        _branch(variables.tables, option, member, member.roots[key])
        for member in members
        if option in dict(member.lifecycle.roots)[key]
    ]
    model.add(root.sending >= option.sent).only_enforce_if(taken)
    model.add(root.valid - root.sent >= option.cycles - option.sent).only_enforce_if(taken)
    if branches and variables.structure.scope.relaxed:
        variables.least_rates[key, option] = min(option.rate, *(one.rate for one in branches))
    links: dict[LinkIdx, list[Literal]] = defaultdict(list)
    for one in branches:
        model.add(root.sending >= one.sent).only_enforce_if(taken, one.joins)
        model.add(root.valid - root.sent >= one.latency).only_enforce_if(taken, one.joins)
        for link in one.links:
            if link not in option.links:
                links[link].append(one.joins)
    variables.extra_links[key, option] = {
        link: _holds(variables, taken, joins, f"{key} also {link}") for link, joins in links.items()
    }


def _holds(variables: Variables, taken: Literal, joins: list[Literal], name: str) -> Literal:
    """Return a literal that is true when the option is taken and one of the members joins."""
    held = variables.literal(name)
    variables.model.add_implication(held, taken)
    variables.model.add_bool_or([*joins, ~held])
    for one in joins:
        variables.model.add_bool_or([~taken, ~one, held])
    return held


def _branch(
    tables: ProblemTables, option: TransferOption, member: ResidencyVars, joins: Literal
) -> _Branch:
    route = tables.routes.between(option.source, member.key.memory)
    if route is None:
        return _Branch(joins, 0, 0, (), option.rate)
    engine = tables.machine.engines[option.engine]
    takes = transfer_cycles(engine, route, tables.problem.slices[member.key.slice].bytes)
    return _Branch(joins, takes.sent, route.latency, route.links, transfer_rate(engine, route))


class _Held(NamedTuple):
    """A part of a link that a transfer holds, whichever of some engines makes it."""

    engines: frozenset[EngineIdx]
    interval: Interval
    rate: Fraction


def _cores_run_one_task_at_a_time(variables: Variables) -> None:
    """The cores of a pool are alike: at most as many tasks at once as there are cores."""
    for pool in variables.tables.pools:
        runs = [task.runs[pool.index] for task in variables.tasks if pool.index in task.runs]
        _at_most(variables, runs, len(pool.cores))


def _at_most(variables: Variables, intervals: list[Interval], count: int) -> None:
    """Let no more than so many intervals overlap."""
    model = variables.model
    if count == 1:
        model.add_no_overlap(intervals)
    elif isinstance(model, CircularModel):
        model.share_out(intervals, count)
    elif len(intervals) > count:
        model.add_cumulative(intervals, [1] * len(intervals), count)


def _add_engines_and_links(variables: Variables) -> None:
    """Never more transfers of an engine than channels, nor more on a link than its rate.

    Links are held from the end of the set-up until all is sent, within the time of the channel.
    Channels are alike, so that their number is enough: intervals of which at most ``c`` overlap can
    be coloured with ``c`` colours.
    """
    model, tables = variables.model, variables.tables
    on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
    on_link: dict[LinkIdx, list[_Held]] = defaultdict(list)
    for key, residency in variables.residencies.items():
        by_engine = _grouped((option.engine, option) for option in residency.options)
        for engine, some in by_engine.items():
            on_engine[engine].append(variables.on_channel(key, some))
        # Of each link, how much of it they hold, and from when on.
        by_link = _grouped(
            ((link, variables.rate(key, option), option.on_links), option)
            for option in residency.options
            for link in option.links
        )
        for (link, rate, _), some in by_link.items():
            engines = frozenset(option.engine for option in some)
            on_link[link].append(_Held(engines, variables.on_links(key, some), rate))
        for option in residency.options:
            rate = variables.rate(key, option)
            for link, literal in variables.extra_links.get((key, option), {}).items():
                begin, size = residency.start + option.on_links, residency.sending - option.on_links
                branch = model.new_optional_interval_var(begin, size, residency.sent, literal, "")
                on_link[link].append(_Held(frozenset([option.engine]), branch, rate))
    for engine, intervals in sorted(on_engine.items()):
        _at_most(variables, intervals, tables.machine.engines[engine].channels)
    for link, held in sorted(on_link.items()):
        if _most_at_once(tables, held) > tables.machine.links[link].rate:
            _add_link(variables, link, held)


def _grouped(pairs: Iterable[tuple[K, TransferOption]]) -> dict[K, frozenset[TransferOption]]:
    found: dict[K, list[TransferOption]] = defaultdict(list)
    for key, option in pairs:
        found[key].append(option)
    return {key: frozenset(some) for key, some in found.items()}


def _add_link(variables: Variables, link: LinkIdx, held: list[_Held]) -> None:
    """Rates are counted in a unit of which all are whole multiples."""
    rate = variables.tables.machine.links[link].rate
    unit = lcm(rate.denominator, *(one.rate.denominator for one in held))
    demands = [int(one.rate * unit) for one in held]
    capacity = int(rate * unit)
    if 2 * min(demands) > capacity:
        variables.model.add_no_overlap([one.interval for one in held])
    else:
        variables.model.add_cumulative([one.interval for one in held], demands, capacity)


def _most_at_once(tables: ProblemTables, held: list[_Held]) -> Fraction:
    """Return a sum that these transfers cannot exceed, for their engines have so many channels.

    A transfer that several engines can make counts for each of them.
    """
    rates: dict[EngineIdx, list[Fraction]] = defaultdict(list)
    for one in held:
        for engine in one.engines:
            rates[engine].append(one.rate)
    return sum(
        (
            sum(sorted(some, reverse=True)[: tables.machine.engines[engine].channels], Fraction(0))
            for engine, some in rates.items()
        ),
        Fraction(0),
    )


class Constraints:
    """Adds every family of constraints to one model."""

    def __init__(self, variables: Variables, capacity: CapacityModel) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._capacity = capacity

    def add_all(self) -> None:
        """Add all families; the pairs in place come before the uses that they exempt."""
        _cores_run_one_task_at_a_time(self._vars)
        self._tasks_follow_their_predecessors()
        self._tasks_end_in_time()
        self._capacity.add_pairs_in_place()
        self._resident_buffers_stay()
        self._residencies_are_filled_once()
        self._transfers_read_what_is_there()
        self._reads_are_served_once()
        self._reads_find_what_is_there()
        self._remote_reads_take_longer()
        self._residencies_are_numbered_by_time()
        self._outputs_are_there_at_the_end()
        self._boxes_of_a_tensor_keep_apart()
        self._the_makespan_is_the_last_end()
        _add_multicasts(self._vars)
        _add_engines_and_links(self._vars)
        self._capacity.add_capacities()
        self._capacity.add_addresses()
        if self._vars.structure.scope.period is None:
            self._tasks_keep_to_their_heads_and_tails()
        else:
            self._nothing_outlasts_its_periods(self._vars.structure.scope.period)
        self._what_nothing_uses_does_not_exist()

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self._vars.tasks, self._tables.predecessors, strict=True):
            for earlier in before:
                self._model.add(task.start >= self._vars.tasks[earlier].end)

    def _tasks_end_in_time(self) -> None:
        for task, cycle in self._tables.not_after.items():
            self._model.add(self._vars.tasks[task].end <= cycle)

    def _resident_buffers_stay(self) -> None:
        """There, until all that read any of them have ended; the last may write in their place."""
        for buffer, memory in self._tables.residents():
            key = CandidateResidency(buffer, memory, 0)
            residency = self._vars.residencies.get(key)
            if residency is None:
                self._model.add_bool_or([])
                continue
            if residency.present is not self._vars.true:
                self._model.add(residency.present == 1)
            for task in self._tables.readers_of_any(buffer) if residency.end is not None else ():
                pairs = self._vars.in_place.items()
                over = [literal for pair, literal in pairs if pair[:2] == (task, key)]
                stays = self._model.add(residency.end >= self._vars.tasks[task].end)
                if over:
                    stays.only_enforce_if([~literal for literal in over])

    def _residencies_are_filled_once(self) -> None:
        """By the task that writes it, its own transfer, or a multicast; times follow from that."""
        for residency in self._vars.residencies.values():
            lifecycle, fills = residency.lifecycle, [*residency.roots.values()]
            if lifecycle.sources:
                fills.append(residency.moved)
            if lifecycle.writer is not None:
                fills.append(self._vars.tasks[lifecycle.writer].memories[residency.key.memory])
            if not lifecycle.initial and not (len(fills) == 1 and fills[0] is residency.present):
                self._model.add(sum(fills) == residency.present)
            if lifecycle.writer is not None and len(fills) > 1:
                task = self._vars.tasks[lifecycle.writer]
                here = task.memories[residency.key.memory]
                self._model.add(residency.start == task.start).only_enforce_if(here)
                self._model.add(residency.valid == task.end).only_enforce_if(here)
            self._a_transfer_has_one_source_and_one_option(residency)

    def _a_transfer_has_one_source_and_one_option(self, residency: ResidencyVars) -> None:
        """And the option begins in the memory of the source."""
        sources = residency.all_sources()
        if len(sources) > 1:
            self._model.add_exactly_one([*(literal for _, literal in sources), ~residency.moved])
        if len(residency.options) > 1:
            self._model.add_exactly_one([*residency.options.values(), ~residency.moved])
        memories = sorted({option.source for option in residency.options})
        for memory in memories if len(memories) > 1 else ():
            here = [literal for source, literal in sources if source.memory == memory]
            options = [taken for o, taken in residency.options.items() if o.source == memory]
            self._model.add(sum(here) == sum(options))
        self._copies_have_the_dimensions_of_their_engine(residency)

    def _copies_have_the_dimensions_of_their_engine(self, residency: ResidencyVars) -> None:
        slice_, transfers = residency.key.slice, self._tables.transfers
        for source, literal in residency.all_sources():
            for option, taken in residency.options.items():
                if option.source == source.memory and not transfers.can_copy(
                    option, slice_, source.slice
                ):
                    self._model.add_bool_or([~literal, ~taken])

    def _transfers_read_what_is_there(self) -> None:
        for residency in self._vars.residencies.values():
            for source, literal in residency.sources.items():
                self._is_used(source, literal, residency.start, residency.sent)
            for source, literal in residency.late_sources.items():
                self._is_used(source, literal, residency.start, None)

    def _is_used(
        self, key: CandidateResidency, literal: Literal, start: Number, end: Number | None
    ) -> None:
        """A use finds the residency valid; one that is not late finds it until its end."""
        used = self._vars.residencies[key]
        if used.present is not self._vars.true and literal is not self._vars.true:
            self._model.add_implication(literal, used.present)
        elif used.present is not self._vars.true:
            self._model.add(used.present == 1)
        if not used.lifecycle.initial:
            self._model.add(start >= used.valid).only_enforce_if(literal)
        if end is not None and used.end is not None:
            self._model.add(end <= used.end).only_enforce_if(literal)

    def _reads_are_served_once(self) -> None:
        """By a residency in the memory in which the task runs, unless cores read remotely."""
        for (task, _), read in self._vars.reads.items():
            servers = read.servers()
            if len(servers) != 1:
                self._model.add_exactly_one([literal for _, literal in servers])
            memories = self._vars.tasks[task].memories
            if self._tables.machine.remote is not None or len(memories) == 1:
                continue
            for memory, here in memories.items():
                local = [literal for key, literal in servers if key.memory == memory]
                self._model.add(sum(local) == here)

    def _reads_find_what_is_there(self) -> None:
        """The operand of a pair in place gives its bytes up when the task starts."""
        pairs: dict[tuple[int, CandidateResidency], list[Literal]] = {}
        for (task, old, _), literal in self._vars.in_place.items():
            pairs.setdefault((task, old), []).append(literal)
        for (task, position), read in self._vars.reads.items():
            times = self._vars.tasks[task]
            slice_ = self._tables.problem.tasks[task].reads[position]
            for key, literal in read.on.items():
                exempt = pairs.get((task, key), []) if key.slice == slice_ else []
                self._is_used(key, literal, times.start, None if exempt else times.end)
                end = self._vars.residencies[key].end
                if exempt and end is not None:
                    unless = [literal, *(~one for one in exempt)]
                    self._model.add(times.end <= end).only_enforce_if(unless)
            for key, literal in read.late.items():
                self._is_used(key, literal, times.start, None)

    def _remote_reads_take_longer(self) -> None:
        """A task takes its cycles in its pool, and those of each operand that lies elsewhere."""
        if self._tables.machine.remote is None:
            return
        for task, times in enumerate(self._vars.tasks):
            extra: Number = 0
            for position, read in enumerate(self._tables.problem.tasks[task].reads):
                extra += self._extra_of(task, position, read)
            for pool, here in times.pools.items():
                cycles = self._tables.cycles_on(task, pool)
                self._model.add(times.size == cycles + extra).only_enforce_if(here)

    def _extra_of(self, task: int, position: int, slice_: int) -> Number:
        """Return the extra cycles of one operand: one literal for each two memories."""
        extra: Number = 0
        memories = self._vars.tasks[task].memories
        sources: dict[int, list[Literal]] = {}
        for key, literal in self._vars.reads[task, position].servers():
            sources.setdefault(key.memory, []).append(literal)
        for source, literals in sources.items():
            for local, here in memories.items():
                cycles = self._tables.remote_cycles(slice_, source, local)
                if cycles is None:
                    for literal in literals:
                        self._model.add_bool_or([~literal, ~here])
                elif cycles:
                    both = self._vars.literal(f"task{task} in {local} reads {position} in {source}")
                    self._model.add(sum(literals) + here <= 1 + both)
                    self._model.add_implication(both, here)
                    self._model.add(both <= sum(literals))
                    extra += cycles * both
        return extra

    def _residencies_are_numbered_by_time(self) -> None:
        """By the cycle from which they are valid."""
        for key, following in self._vars.structure.successive():
            one, other = self._vars.residencies[key], self._vars.residencies[following]
            self._model.add_implication(other.present, one.present)
            if not one.lifecycle.initial:
                self._model.add(one.valid <= other.valid).only_enforce_if(other.present)

    def _outputs_are_there_at_the_end(self) -> None:
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in is None:
                continue
            there = [
                residency
                for residency in self._vars.residencies.values()
                if residency.key[:2] == (buffer.index, buffer.ends_in)
            ]
            self._model.add_bool_or([self._is_kept(residency) for residency in there])

    def _is_kept(self, residency: ResidencyVars) -> Literal:
        """Return a literal that implies that a residency lasts until the makespan."""
        if residency.end is None or residency.lifecycle.open:
            return residency.present
        kept = self._vars.literal(f"{residency.key} kept")
        self._model.add_implication(kept, residency.present)
        self._model.add(residency.end >= self._vars.makespan).only_enforce_if(kept)
        return kept

    def _boxes_of_a_tensor_keep_apart(self) -> None:
        """Two residencies at places that overlap in a tensor do not exist at one time."""
        for pair in self._vars.structure.scope.conflicts:
            self._model.add_no_overlap(
                [self._capacity.interval(self._vars.residencies[key]) for key in pair]
            )

    def _the_makespan_is_the_last_end(self) -> None:
        makespan = self._vars.makespan
        for task in self._vars.tasks:
            self._model.add(makespan >= task.end)
        for residency in self._vars.residencies.values():
            if residency.lifecycle.sources or residency.lifecycle.roots:
                self._model.add(makespan >= residency.valid).only_enforce_if(residency.present)

    def _tasks_keep_to_their_heads_and_tails(self) -> None:
        """A task starts after its head and leaves its tail (:mod:`spmilp.bounds.paths`)."""
        paths = self._tables.paths
        for task, head, tail in zip(self._vars.tasks, paths.head, paths.tail, strict=True):
            self._model.add(task.start >= head)
            self._model.add(task.start + tail <= self._vars.makespan)

    def _nothing_outlasts_its_periods(self, period: Cycles) -> None:
        """A core or channel is held for one period at most, bytes as long as there are instances.

        A tensor that comes in is read before the last of its instances comes in, and what goes out
        lies there until a period after the end of its inference (docs/format.md, 5.5).
        """
        model, most, problem = self._model, MOST_INSTANCES * period, self._tables.problem
        for task in self._vars.tasks:
            model.add(task.size <= period)
        for key, one in self._vars.residencies.items():
            for option, taken in one.options.items():
                is_pipelined = self._tables.machine.engines[option.engine].pipelined
                free = one.sent if is_pipelined else one.valid
                model.add(free - one.start <= period).only_enforce_if(taken)
            is_constant = problem.buffers[problem.slices[key.slice].buffer].is_constant
            is_stream = self._tables.at_place(*key[:2]) and not is_constant
            if one.lifecycle.initial:
                for literal, end in self._uses_of(key) if is_stream else ():
                    model.add(end + period <= most).only_enforce_if(literal)
                continue
            if one.end is not None:
                model.add(one.end - one.start <= most).only_enforce_if(one.present)
            if is_stream:
                last = self._vars.makespan + period
                model.add(last - one.start <= most).only_enforce_if(one.present)

    def _uses_of(self, key: CandidateResidency) -> Iterator[tuple[Literal, Number]]:
        """Yield what may use a residency, and when that has ended."""
        for other in self._vars.residencies.values():
            if key in other.sources:
                yield other.sources[key], other.sent
        for (task, _), read in self._vars.reads.items():
            if key in read.on:
                yield read.on[key], self._vars.tasks[task].end

    def _what_nothing_uses_does_not_exist(self) -> None:
        """A residency that a transfer fills serves a read, a transfer, or the end.

        One that serves nothing can be left out with its transfer. Of an open candidate its own part
        is used, for it is an ordinary residency.
        """
        problem = self._tables.problem
        uses: dict[CandidateResidency, list[Literal]] = defaultdict(list)
        for read in self._vars.reads.values():
            for server, literal in read.on.items():
                uses[server].append(literal)
        for residency in self._vars.residencies.values():
            for source, literal in residency.sources.items():
                uses[source].append(literal)
        for key, residency in self._vars.residencies.items():
            buffer = problem.buffers[problem.slices[key.slice].buffer]
            wanted = key.slice == buffer.index and buffer.ends_in == key.memory
            lifecycle = residency.lifecycle
            wanted = wanted or self._tables.is_resident(key.slice, key.memory)
            if not lifecycle.initial and lifecycle.writer is None and not wanted:
                self._model.add_bool_or([*uses[key], ~residency.present])
