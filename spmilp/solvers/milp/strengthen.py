"""Valid inequalities: rows that every plan satisfies, which tighten the linear relaxation."""

from collections import defaultdict
from collections.abc import Sequence
from math import lcm
from typing import NamedTuple

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.address_model import AddressModel
from spmilp.solvers.milp.program import Linear, Number, total
from spmilp.solvers.milp.structure import Origin
from spmilp.solvers.milp.variables import Variables
from spmilp.units import Cycles

MOST_SETS = 6
"""Thresholds tried for each pool, engine and link."""


class Share(NamedTuple):
    """Work on a resource, and the cycles that come before and after it."""

    head: Cycles
    tail: Cycles
    amount: Number


def strengthen(variables: Variables, addresses: AddressModel) -> None:
    """Add all families."""
    _tasks_leave_their_tails(variables)
    _cores_have_time_for_their_work(variables)
    _engines_and_links_have_time_for_their_transfers(variables)
    _memories_hold_their_contents_over_time(variables, addresses)
    _unused_candidates_do_not_exist(variables)


def _tasks_leave_their_tails(variables: Variables) -> None:
    for task, tail in zip(variables.tasks, variables.tables.paths.tail, strict=True):
        variables.program.at_least(variables.makespan, task.start + tail)


def _cores_have_time_for_their_work(variables: Variables) -> None:
    """Some tasks of a pool fit between their least head and the least time after their ends.

    Fernandez and Bussell, "Bounds on the number of processors and time for multiprocessor optimal
    schedules", IEEE Trans. Computers C-22(8), 1973, for the assignment that the model chooses.
    """
    tables, paths = variables.tables, variables.tables.paths
    for pool in tables.pools:
        shares = [
            Share(
                paths.head[task],
                paths.tail[task] - paths.cycles[task],
                tables.cycles_on(task, pool.index) * times.pools[pool.index],
            )
            for task, times in enumerate(variables.tasks)
            if pool.index in times.pools
        ]
        _fit(variables, shares, len(pool.cores))


def _engines_and_links_have_time_for_their_transfers(variables: Variables) -> None:
    """The work of some transfers fits between their least head and their least tail."""
    machine, windows = variables.tables.machine, variables.tables.windows
    fills = [fill for one in variables.candidates.values() for fill in one.fills.on]
    rates = [fill.option.rate for fill in fills]
    unit = lcm(*(rate.denominator for rate in (*rates, *(link.rate for link in machine.links))))
    engines: dict[int, list[Share]] = defaultdict(list)
    links: dict[int, list[Share]] = defaultdict(list)
    for key, candidate in variables.candidates.items():
        head, tail = windows.start(key[:2]), windows.rest(key[:2])
        for fill, found in candidate.fills.all:
            cycles, rate = fill.option.cycles, int(fill.option.rate * unit)
            engines[fill.option.engine].append(Share(head, tail, cycles * found))
            for link in fill.option.links:
                links[link].append(Share(head, tail, cycles * rate * found))
    for engine, shares in sorted(engines.items()):
        _fit(variables, shares, machine.engines[engine].channels)
    for link, shares in sorted(links.items()):
        _fit(variables, shares, int(machine.links[link].rate * unit))


def _fit(variables: Variables, shares: Sequence[Share], capacity: int) -> None:
    """Demand that the chosen ones of some shares fit between the least head and the least tail.

    Perhaps none is chosen, so heads and tails count up to the critical path only, which every
    makespan reaches.
    """
    items = range(len(shares))
    heads = _tops(items, [share.head for share in shares])
    tails = _tops(items, [share.tail for share in shares])
    for some in sorted(heads | tails, key=sorted):
        apart = min(shares[i].head for i in some) + min(shares[i].tail for i in some)
        apart = min(apart, variables.tables.paths.longest)
        amount = total(shares[i].amount for i in sorted(some))
        variables.program.at_most(amount, capacity * (variables.makespan - apart))


def _tops(items: Sequence[int], values: Sequence[int]) -> set[frozenset[int]]:
    """Return the items whose value is at least each of a few thresholds."""
    thresholds = sorted({values[item] for item in items})
    step = -(-len(thresholds) // MOST_SETS) or 1
    return {frozenset(i for i in items if values[i] >= least) for least in thresholds[::step]}


def _memories_hold_their_contents_over_time(variables: Variables, addresses: AddressModel) -> None:
    """Bytes times cycles of all residencies in a memory fit its capacity until the makespan."""
    for memory, items in addresses.items.items():
        capacity = variables.tables.capacity[memory]
        if capacity is None or memory in addresses.growth:
            continue
        held = [
            item.blocks * (item.span.end - item.span.start)
            for item in items
            if isinstance(item.key, CandidateResidency)
        ]
        variables.program.at_most(total(held), capacity * variables.makespan)


def _unused_candidates_do_not_exist(variables: Variables) -> None:
    """A candidate that a transfer fills serves a read, a transfer, or an output."""
    uses: dict[CandidateResidency, list[Linear]] = defaultdict(list)
    for read in variables.reads.values():
        for server, found in read.on.items():
            uses[server.source].append(found)
    for candidate in variables.candidates.values():
        for fill, found in candidate.fills.on.items():
            uses[fill.source].append(found)
    buffers = variables.tables.problem.buffers
    for key, candidate in variables.candidates.items():
        buffer = variables.tables.problem.slices[key.slice].buffer
        wanted = key.slice == buffer and buffers[buffer].ends_in == key.memory
        wanted = wanted or variables.tables.is_resident(key.slice, key.memory)
        if candidate.shape.origin is Origin.TRANSFERRED and not wanted:
            variables.program.at_least(total(uses[key]), candidate.present)
