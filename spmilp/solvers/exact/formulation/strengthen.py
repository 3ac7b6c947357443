"""Rows that every plan satisfies and that the solver would find late: each has its switch."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.objective import weighted
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.exact.formulation.variables import Interval, Literal, Variables
from spmilp.units import Cycles, MemoryIdx, SliceIdx

MOST_SETS = 6
"""Thresholds tried for each pool, engine and link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What a model has: one switch for each cut and symmetry, and how many residencies.

    Parameters
    ----------
    addresses_in_model
        Whether the model knows every address (``no_overlap_2d``) rather than only what a packing
        has shown to be needed. The peak is always made small with addresses. ``None``: where
        traffic or energy is to be small and all tasks work in one memory, for there much of a plan
        is its packing.
    disjoint_residencies
        In a proof a slice does not lie in one memory twice at one time, unless in place or for its
        address. Plans may, for so many do.
    residencies_are_used
        A residency exists only if something uses it.
    energy_of_cores, energy_of_links
        Work and traffic need time: a row for each kind of core, and each link and engine.
    working_sets
        Running tasks, each with all its bytes, and arriving transfers share a memory.
    known_heads
        Tasks start no earlier and end no later than the critical paths allow.
    residencies
        Of a slice in a memory whose space is short, to begin with.
    most_residencies
        The number up to which that is raised where the proof needs it.
    """

    addresses_in_model: bool | None = None
    disjoint_residencies: bool = True
    residencies_are_used: bool = True
    energy_of_cores: bool = True
    energy_of_links: bool = True
    working_sets: bool = True
    known_heads: bool = True
    residencies: int = 2
    most_residencies: int = 4


class Share(NamedTuple):
    """What a task or transfer holds in all if it is there, and cycles before and after it."""

    head: Cycles
    tail: Cycles
    amount: int | Fraction
    taken: Literal


def strengthen(variables: Variables, settings: ModelOptions, *, addressed: bool) -> None:
    """Add the rows that the settings ask for.

    Parameters
    ----------
    addressed
        Whether some addresses are in the model, so that a copy beside the original can be of use.
    """
    if settings.known_heads:
        _tasks_keep_to_their_heads_and_tails(variables)
    if settings.energy_of_cores:
        _cores_have_time_for_their_work(variables)
    if settings.energy_of_links:
        _links_and_engines_have_time_for_their_transfers(variables)
    if settings.working_sets:
        _working_sets_and_arrivals_share_a_memory(variables)
    if settings.residencies_are_used:
        _what_nothing_uses_does_not_exist(variables)
    if settings.disjoint_residencies and variables.structure.scope.relaxed and not addressed:
        _residencies_of_a_slice_follow_each_other(variables)


def _tasks_keep_to_their_heads_and_tails(variables: Variables) -> None:
    """A task starts after its head and leaves its tail (:mod:`spmilp.bounds.paths`)."""
    paths = variables.tables.paths
    for task, head, tail in zip(variables.tasks, paths.head, paths.tail, strict=True):
        variables.model.add(task.start >= head)
        variables.model.add(task.start + tail <= variables.makespan)


def _cores_have_time_for_their_work(variables: Variables) -> None:
    """Some tasks of a pool fit between their least head and the least time after their ends.

    Fernandez and Bussell, "Bounds on the number of processors and time for multiprocessor optimal
    schedules", IEEE Trans. Computers C-22(8), 1973, for the assignment that the model chooses: for
    all tasks of the pool, for those with late heads, and for those with long tails.
    """
    tables, paths = variables.tables, variables.tables.paths
    for pool in tables.pools:
        shares = [
            Share(
                paths.head[task],
                paths.tail[task] - paths.cycles[task],
                tables.cycles_on(task, pool.index),
                times.pools[pool.index],
            )
            for task, times in enumerate(variables.tasks)
            if pool.index in times.pools
        ]
        _shares_fit(variables, shares, len(pool.cores))


def _tops(items: Sequence[int], values: Sequence[int]) -> set[frozenset[int]]:
    """Return the items whose value is at least each of a few thresholds."""
    thresholds = sorted({values[item] for item in items})
    step = -(-len(thresholds) // MOST_SETS) or 1
    return {frozenset(i for i in items if values[i] >= least) for least in thresholds[::step]}


def _links_and_engines_have_time_for_their_transfers(variables: Variables) -> None:
    """What some transfers hold, times their cycles, fits between their heads and tails.

    A transfer of a buffer that a task writes starts after that task's head and cycles; one that is
    of no use but to tasks that read the buffer ends before the shortest of their tails.
    """
    machine = variables.tables.machine
    engines: dict[int, list[Share]] = defaultdict(list)
    links: dict[int, list[Share]] = defaultdict(list)
    for key, residency in variables.residencies.items():
        head, tail = _head_and_tail(variables.tables, key.slice)
        for option, taken in residency.options.items():
            engines[option.engine].append(Share(head, tail, option.cycles, taken))
            for link in option.links:
                part = variables.rate(key, option) / machine.links[link].rate
                links[link].append(Share(head, tail, option.cycles * part, taken))
    for engine, shares in sorted(engines.items()):
        _shares_fit(variables, shares, machine.engines[engine].channels)
    for _, shares in sorted(links.items()):
        _shares_fit(variables, shares, 1)


def _head_and_tail(tables: ProblemTables, slice_: SliceIdx) -> tuple[Cycles, Cycles]:
    """Return cycles before and after every useful transfer of a slice."""
    paths, buffer = tables.paths, tables.problem.slices[slice_].buffer
    writer = tables.writers[buffer]
    head = 0 if writer is None else paths.head[writer] + paths.cycles[writer]
    pin = tables.pins.get(buffer)
    if tables.problem.buffers[buffer].ends_in is not None or (pin is not None and pin.resident):
        return head, 0
    parts = (buffer, *tables.parts[buffer])
    tails = [paths.tail[task] for part in parts for task, _ in tables.readers[part]]
    return head, min(tails, default=0)


def _shares_fit(variables: Variables, shares: list[Share], capacity: int) -> None:
    """What some tasks or transfers hold fits into the capacity between their heads and tails."""
    items = range(len(shares))
    unit = lcm(*(Fraction(share.amount).denominator for share in shares))
    heads = _tops(items, [share.head for share in shares])
    tails = _tops(items, [share.tail for share in shares])
    for some in sorted(heads | tails, key=sorted):
        head = min(shares[index].head for index in some)
        tail = min(shares[index].tail for index in some)
        terms = [(shares[i].taken, int(shares[i].amount * unit)) for i in sorted(some)]
        time = variables.makespan - head - tail
        variables.model.add(weighted(terms) <= capacity * unit * time)


def _working_sets_and_arrivals_share_a_memory(variables: Variables) -> None:
    """While a task runs its operands and results are there; what arrives is none of them.

    The residencies say so one by one; here each task has its whole working set as one demand, with
    times that are known much better than theirs. Operands count in the memory of a single core
    only, where no two tasks share one at the same time, and where cores do not read remotely.
    """
    tables = variables.tables
    demands: dict[MemoryIdx, list[tuple[Interval, int]]] = defaultdict(list)
    for key, residency in variables.residencies.items():
        if residency.transfer is not None:
            demands[key.memory].append((residency.transfer, tables.own_blocks(*key[:2])))
    for task, times in enumerate(variables.tasks):
        for pool, run in times.runs.items():
            memory = tables.pools[pool].memory
            demands[memory].append((run, tables.working_set(task, memory)))
    for memory, capacity in enumerate(tables.capacity):
        wanted = [(interval, blocks) for interval, blocks in demands[memory] if blocks]
        if capacity is not None and sum(blocks for _, blocks in wanted) > capacity:
            intervals = [interval for interval, _ in wanted]
            variables.model.add_cumulative(intervals, [blocks for _, blocks in wanted], capacity)


def _what_nothing_uses_does_not_exist(variables: Variables) -> None:
    """A residency that a transfer fills serves a read, a transfer, or the end.

    One that serves nothing can be left out with its transfer. Of an open candidate its own part is
    used, for it is an ordinary residency.
    """
    problem = variables.tables.problem
    uses: dict[CandidateResidency, list[Literal]] = defaultdict(list)
    for read in variables.reads.values():
        for server, literal in read.on.items():
            uses[server].append(literal)
    for residency in variables.residencies.values():
        for source, literal in residency.sources.items():
            uses[source].append(literal)
    for key, residency in variables.residencies.items():
        buffer = problem.buffers[problem.slices[key.slice].buffer]
        wanted = key.slice == buffer.index and buffer.ends_in == key.memory
        lifecycle = residency.lifecycle
        wanted = wanted or variables.tables.is_resident(key.slice, key.memory)
        if not lifecycle.initial and lifecycle.writer is None and not wanted:
            variables.model.add_bool_or([*uses[key], ~residency.present])


def _residencies_of_a_slice_follow_each_other(variables: Variables) -> None:
    """Of two residencies of a slice in a memory the second begins when the first has ended.

    While two of them exist at one time, one is enough: the one that is valid first, kept until the
    second has ended. That fails only where a result takes the place of the first, so slices with
    pairs in place are left out, and where addresses are in the model.
    """
    paired = {old.slice for _, old, _ in variables.in_place}
    for key, following in variables.structure.successive():
        one, other = variables.residencies[key], variables.residencies[following]
        if key.slice not in paired and one.end is not None:
            variables.model.add(one.end <= other.start).only_enforce_if(other.present)
