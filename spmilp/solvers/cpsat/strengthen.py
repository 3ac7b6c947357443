"""Rows that every plan satisfies and that the solver would find late: each has its switch."""

from collections import defaultdict
from math import lcm

from ortools.sat.python import cp_model

from spmilp.solvers.bounds.movement import Movement
from spmilp.solvers.bounds.paths import paths_of
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.scope import Stay
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.variables import Literal, Number, Variables


def strengthen(
    model: cp_model.CpModel,
    tables: Tables,
    variables: Variables,
    options: CpSatOptions,
    addressed: bool,
) -> None:
    """Add the rows that the options ask for.

    Parameters
    ----------
    addressed
        Whether some addresses are in the model, so that a copy beside the original can be of use.
    """
    if options.known_heads:
        _tasks_keep_to_their_heads_and_tails(model, tables, variables)
    if options.energy_of_cores:
        _cores_have_time_for_their_work(model, tables, variables)
    if options.energy_of_links:
        _links_and_engines_have_time_for_their_transfers(model, tables, variables)
    if options.stays_are_used:
        _what_nothing_uses_does_not_exist(model, tables, variables)
    if options.stays_in_turn and not addressed:
        _stays_of_a_slice_take_turns(model, tables, variables)


def _tasks_keep_to_their_heads_and_tails(
    model: cp_model.CpModel, tables: Tables, variables: Variables
) -> None:
    """A task starts after its head and leaves its tail (:mod:`spmilp.solvers.bounds.paths`)."""
    paths = paths_of(tables.problem, Movement(tables.problem))
    for task, head, tail in zip(variables.tasks, paths.head, paths.tail, strict=True):
        model.add(task.start >= head)
        model.add(task.start + tail <= variables.makespan)


def _cores_have_time_for_their_work(
    model: cp_model.CpModel, tables: Tables, variables: Variables
) -> None:
    """The tasks of a pool fit between the least head and the least time after their ends.

    Fernandez and Bussell, "Bounds on the number of processors and time for multiprocessor optimal
    schedules", IEEE Trans. Computers C-22(8), 1973, for the assignment that the model chooses.
    """
    paths = paths_of(tables.problem, Movement(tables.problem))
    for pool in tables.pools:
        tasks = [t for t, times in enumerate(variables.tasks) if pool.index in times.pools]
        if not tasks:
            continue
        head = min(paths.head[task] for task in tasks)
        after = min(paths.tail[task] - paths.cycles[task] for task in tasks)
        work = sum(
            tables.cycles_on(task, pool.index) * variables.tasks[task].pools[pool.index]
            for task in tasks
        )
        some = variables.literal(f"pool{pool.index} works")
        for task in tasks:
            model.add_implication(variables.tasks[task].pools[pool.index], some)
        count = len(pool.cores)
        model.add(work <= count * (variables.makespan - head - after)).only_enforce_if(some)


def _links_and_engines_have_time_for_their_transfers(
    model: cp_model.CpModel, tables: Tables, variables: Variables
) -> None:
    """Cycles of transfers times what they hold are at most the makespan times what there is."""
    engines: dict[int, list[tuple[int, Literal]]] = defaultdict(list)
    links: dict[int, list[tuple[int, Literal]]] = defaultdict(list)
    rates = {way.rate for stay in variables.stays.values() for way in stay.moves}
    rates |= set(variables.least_rates.values())
    rates |= {link.rate for link in tables.machine.links}
    unit = lcm(*(rate.denominator for rate in rates)) if rates else 1
    for key, stay in variables.stays.items():
        for way, move in stay.moves.items():
            engines[way.engine].append((way.cycles, move))
            rate = variables.least_rates.get((key, way), way.rate)
            for link in way.links:
                links[link].append((int(way.cycles * rate * unit), move))
    for engine, terms in sorted(engines.items()):
        channels = tables.machine.engines[engine].channels
        model.add(_sum(terms) <= channels * variables.makespan)
    for link, terms in sorted(links.items()):
        capacity = int(tables.machine.links[link].rate * unit)
        model.add(_sum(terms) <= capacity * variables.makespan)


def _what_nothing_uses_does_not_exist(
    model: cp_model.CpModel, tables: Tables, variables: Variables
) -> None:
    """A stay that a transfer fills serves a read, a transfer, or the end.

    One that serves nothing can be left out with its transfer. Of an open stay its own part is used,
    for it is an ordinary residency.
    """
    uses: dict[Stay, list[Literal]] = defaultdict(list)
    for read in variables.reads.values():
        for server, literal in read.on.items():
            uses[server].append(literal)
    for stay in variables.stays.values():
        for source, literal in stay.arcs.items():
            uses[source].append(literal)
    for key, filled in variables.stays.items():
        buffer = tables.problem.buffers[tables.problem.slices[key.slice].buffer]
        wanted = key.slice == buffer.index and buffer.ends_in == key.memory
        if not filled.shape.initial and filled.shape.writer is None and not wanted:
            model.add_bool_or([*uses[key], ~filled.present])


def _stays_of_a_slice_take_turns(
    model: cp_model.CpModel, tables: Tables, variables: Variables
) -> None:
    """Of two stays of a slice in a memory the second begins when the first has ended.

    While two of them exist at one time, one is enough: the one that is valid first, kept until the
    second has ended. That fails only where a result takes the place of the first, so slices with
    pairs in place are left out, and where addresses are in the model.
    """
    paired = {old.slice for _, old, _ in variables.in_place}
    for stay, following in variables.structure.numbers():
        one, other = variables.stays[stay], variables.stays[following]
        if stay.slice not in paired and one.end is not None:
            model.add(one.end <= other.start).only_enforce_if(other.present)


def _sum(terms: list[tuple[int, Literal]]) -> Number:
    return cp_model.LinearExpr.weighted_sum(
        [literal for _, literal in terms], [weight for weight, _ in terms]
    )
