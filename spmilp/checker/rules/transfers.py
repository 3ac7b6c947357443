"""Rule 7: transfers copy what is there to where room is, as engine, channel and links allow."""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import lcm

from spmilp.checker.rules.case import Case, Finding
from spmilp.checker.rules.sweeps import Span, clashes
from spmilp.machine.controllers import CONTROLLERS, defects_of
from spmilp.machine.machine import Link
from spmilp.machine.routes import transfer_cycles
from spmilp.plan.plan import Transfer
from spmilp.problem.strides import Layout, strided_copy
from spmilp.units import Cycles, EngineIdx, LinkIdx, TransferIdx


def transfer_data(case: Case) -> Iterator[Finding]:
    """The source is valid until all is sent, and the destinations exist until it has arrived."""
    for move in case.plan.transfers:
        for defect in case.defects_of_source(case.transfer_uses[move.index]):
            yield _finding(case, move, f"it reads {case.residency(move.source)}, {defect}")
        for defect in _defects_of_destinations(case, move):
            yield _finding(case, move, defect)


def _defects_of_destinations(case: Case, move: Transfer) -> Iterator[str]:
    memories = set()
    for index in move.destinations:
        residency = case.plan.residencies[index]
        name = f"its destination {case.residency(index)}"
        if residency.slice != move.slice:
            yield f"{name} holds {case.content(index)}"
        if residency.end < move.end:
            yield f"{name} ends at cycle {residency.end} < {move.end}, its end"
        if residency.memory in memories:
            yield f"it has 2 destinations in {case.memory(residency.memory)}, expected 1 at most"
        memories.add(residency.memory)


def transfer_route(case: Case) -> Iterator[Finding]:
    """Engine, route and duration are the machine's; several destinations only where it can."""
    for move in case.plan.transfers:
        for defect in _defects_of_path(case, move):
            yield _finding(case, move, defect)


def _defects_of_path(case: Case, move: Transfer) -> Iterator[str]:
    engine = case.machine.engines[move.engine]
    source = case.plan.residencies[move.source].memory
    ends = tuple([case.plan.residencies[end].memory for end in move.destinations])
    if len(ends) > 1 and not engine.multicast:
        yield f"{len(ends)} destinations > 1: engine {engine.name} cannot multicast"
    for memory in ends:
        if not engine.serves(source, memory):
            path = f"{case.memory(source)} to {case.memory(memory)}"
            yield f"engine {engine.name} does not move data from {path}"
    route = case.route(source, ends)
    if route is None:
        targets = ", ".join(map(case.memory, ends))
        yield f"no route leads from {case.memory(source)} to {targets}"
        return
    if move.route != route.links:
        yield f"it takes the links {list(move.route)}, expected {list(route.links)}"
    size = case.problem.slices[move.slice].bytes
    expected = transfer_cycles(engine, route, size)
    of = f"for {size} B by engine {engine.name}"
    if move.sent - move.start != expected.sent:
        sends = f"it sends until {move.sent}, {move.sent - move.start} cycles after its start"
        yield f"{sends}, expected {expected.sent} {of}"
    if move.end - move.start != expected.arrived:
        lasts = f"it lasts [{move.start}, {move.end}) = {move.end - move.start} cycles"
        yield f"{lasts}, expected {expected.arrived} {of}"


def transfer_limits(case: Case) -> Iterator[Finding]:
    """Length, nested strides and congruence keep within what the engine can."""
    for move in case.plan.transfers:
        for defect in _defects_of_shape(case, move):
            yield _finding(case, move, defect)


def _defects_of_shape(case: Case, move: Transfer) -> Iterator[str]:
    engine = case.machine.engines[move.engine]
    part = case.problem.slices[move.slice]
    if engine.longest is not None and part.bytes > engine.longest:
        yield f"{part.bytes} B > {engine.longest} B, the longest transfer of {engine.name}"
    free = (engine.dimensions, engine.congruence, engine.controller) == (None, 1, None)
    if free or not case.holds(move.source, move.slice):
        return
    item, by = case.problem.buffers[part.buffer].item, engine.congruence
    source, strides = case.where(move.slice, move.source)
    for end in move.destinations:
        if case.plan.residencies[end].slice != move.slice:
            continue
        target, target_strides = case.where(move.slice, end)
        layouts = Layout(source, strides), Layout(target, target_strides)
        copy = strided_copy(part.extent, item, *layouts)
        name = f"copy to {case.residency(end)}"
        if engine.dimensions is not None and copy.dimensions > engine.dimensions:
            many = f"{copy.dimensions} dimensions > {engine.dimensions}"
            yield f"its {name} has {many} of {engine.name}"
        if engine.controller is not None:
            for defect in defects_of(copy, CONTROLLERS[engine.controller]):
                yield f"{name}: {defect}"
        if (source - target) % by:
            yield (
                f"source address {source} and destination address {target} differ modulo "
                f"{by} B: {source % by} and {target % by}"
            )


def _finding(case: Case, move: Transfer, defect: str) -> Finding:
    name, engine = f"transfer {move.index}", f"engine {case.machine.engines[move.engine].name}"
    return (name, engine), f"{name} of {case.slice(move.slice)}: {defect}"


def channels(case: Case) -> Iterator[Finding]:
    """A transfer has a channel that its engine has, alone until this takes the next one."""
    per_channel: defaultdict[tuple[EngineIdx, int], list[Span]] = defaultdict(list)
    for move in case.plan.transfers:
        engine = case.machine.engines[move.engine]
        if not 0 <= move.channel < engine.channels:
            name, where = f"transfer {move.index}", f"engine {engine.name}"
            yield (
                (name, where),
                f"{name} uses channel {move.channel} of {where}, which has {engine.channels}, "
                "numbered from 0",
            )
        free = engine.busy_until(move.sent, move.end)
        turns = case.turns(move.start, free)
        per_channel[move.engine, move.channel] += ((*turn, move.index) for turn in turns)
    for (index, channel), moves in sorted(per_channel.items()):
        for (_, end, busy), (start, _, later) in clashes(moves):
            where = f"engine {case.machine.engines[index].name}"
            first, second = f"transfer {busy}", f"transfer {later}"
            yield (
                (where, first, second),
                f"channel {channel} of {where} starts {second} at cycle {start} < {end}, until "
                f"which {first} keeps it busy",
            )


def link_rates(case: Case) -> Iterator[Finding]:
    """The rates of the transfers on a link add up to its own at most, at every cycle.

    A transfer holds the least of its engine's rate and its links' rates on each of its links, from
    the end of its set-up until all is sent.
    Rates are counted in a unit of which all are whole multiples.
    """
    engines, links = case.machine.engines, case.machine.links
    rates = [*(engine.rate for engine in engines), *(link.rate for link in links)]
    parts = lcm(*(rate.denominator for rate in rates))

    @cache
    def held(engine: EngineIdx, route: tuple[LinkIdx, ...]) -> int:
        return int(parts * min([engines[engine].rate, *(links[link].rate for link in route)]))

    events: defaultdict[LinkIdx, list[tuple[Cycles, int, TransferIdx]]] = defaultdict(list)
    for move in case.plan.transfers:
        amount = held(move.engine, move.route)
        begin, sent = move.start + engines[move.engine].setup, move.sent
        if move.start < case.begins:
            sent = min(sent, case.begins)
        for first, last in case.turns(begin, sent) if begin < sent else ():
            for link in move.route:
                events[link] += (first, amount, move.index), (last, -amount, move.index)
    for index, changes in sorted(events.items()):
        yield from _overloads(links[index], changes, parts)


def _overloads(
    link: Link, changes: list[tuple[Cycles, int, TransferIdx]], parts: int
) -> Iterator[Finding]:
    """Say at which cycles a link carries too much, and of whom.

    ``changes`` have the cycle at which a transfer begins or ends, what it adds to the load, counted
    in so many ``parts`` of a byte per cycle, and which transfer it is.
    """
    load, capacity, alive = 0, int(link.rate * parts), dict[TransferIdx, None]()
    for cycle, amount, transfer in sorted(changes):
        load += amount
        if amount < 0:
            alive.pop(transfer, None)
            continue
        alive[transfer] = None
        if load > capacity:
            name, users = f"link {link.source} -> {link.target}", [f"transfer {t}" for t in alive]
            carries = f"{name} carries {Fraction(load, parts)} B/cycle > {link.rate} B/cycle"
            yield (name, *users), f"{carries} at cycle {cycle} ({', '.join(users)})"
