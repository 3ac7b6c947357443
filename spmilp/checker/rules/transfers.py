"""Rule 7: transfers copy what is there to where room is, as engine, channel and links allow."""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from operator import lt
from typing import TypeAlias

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.machine.controllers import CONTROLLERS, Block, defects_of
from spmilp.machine.routes import transfer_cycles
from spmilp.plan.plan import Transfer
from spmilp.problem.strides import Layout, strided_copy
from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, MemoryIdx

_Path: TypeAlias = tuple[EngineIdx, MemoryIdx, tuple[MemoryIdx, ...], tuple[LinkIdx, ...]]
"""Engine, memories of source and destinations, and links; thousands of transfers share each."""


def transfer_data(case: Case) -> Iterator[Violation]:
    """The source holds the slice and is valid, and the destinations exist, all the time."""
    for use in case.transfer_uses:
        move = case.plan.transfers[use.number]
        for defect in (*_defects_of_source(case, move), *_defects_of_destinations(case, move)):
            yield _violation("transfer_data", case, move, defect)


def transfer_route(case: Case) -> Iterator[Violation]:
    """Engine, route and duration are the machine's; several destinations only where it can."""
    known: dict[_Path, tuple[str, ...]] = {}
    cycles: dict[tuple[_Path, Bytes], Cycles | None] = {}
    for move in case.plan.transfers:
        source = case.plan.residencies[move.source].memory
        destinations = tuple([case.plan.residencies[end].memory for end in move.destinations])
        path = move.engine, source, destinations, move.route
        size = case.problem.slices[move.slice].bytes
        if path not in known:
            known[path] = tuple(_defects_of_path(case, *path))
        if (path, size) not in cycles:
            cycles[path, size] = _cycles(case, path, size)
        for defect in (*known[path], *_defects_of_duration(case, move, cycles[path, size])):
            yield _violation("transfer_route", case, move, defect)


def transfer_limits(case: Case) -> Iterator[Violation]:
    """Length, nested strides and congruence keep within what the engine can."""
    for move in case.plan.transfers:
        for defect in _defects_of_shape(case, move):
            yield _violation("transfer_limits", case, move, defect)


def _defects_of_source(case: Case, move: Transfer) -> Iterator[str]:
    residency, name = case.plan.residencies[move.source], case.residency(move.source)
    if not case.holds(move.source, move.slice):
        held = "scratch" if residency.slice is None else case.slice(residency.slice)
        yield f"its source {name} holds {held}"
    valid = case.valid_from[move.source]
    if valid > move.start:
        yield f"its source {name} is valid from cycle {valid} > {move.start}, its start"
    if residency.end < move.end and not case.is_lost(case.transfer_uses[move.index]):
        yield f"its source {name} ends at cycle {residency.end} < {move.end}, its end"


def _defects_of_destinations(case: Case, move: Transfer) -> Iterator[str]:
    memories = set()
    for destination in move.destinations:
        residency, name = case.plan.residencies[destination], case.residency(destination)
        if residency.slice != move.slice:
            held = "scratch" if residency.slice is None else case.slice(residency.slice)
            yield f"its destination {name} holds {held}"
        if residency.end < move.end:
            yield f"its destination {name} ends at cycle {residency.end} < {move.end}, its end"
        if residency.memory in memories:
            yield f"it has 2 destinations in {case.memory(residency.memory)}, expected 1 at most"
        memories.add(residency.memory)


def _defects_of_path(
    case: Case,
    engine_index: EngineIdx,
    source: MemoryIdx,
    destinations: tuple[MemoryIdx, ...],
    links: tuple[LinkIdx, ...],
) -> Iterator[str]:
    engine = case.machine.engines[engine_index]
    if len(destinations) > 1 and not engine.multicast:
        yield f"{len(destinations)} destinations > 1: engine {engine.name} cannot multicast"
    for memory in destinations:
        if not engine.serves(source, memory):
            ends = f"{case.memory(source)} to {case.memory(memory)}"
            yield f"engine {engine.name} does not move data from {ends}"
    route = case.route(source, destinations)
    if route is None:
        targets = ", ".join(case.memory(memory) for memory in destinations)
        yield f"no route leads from {case.memory(source)} to {targets}"
    elif links != route.links:
        yield f"it takes the links {list(links)}, expected {list(route.links)}"


def _cycles(case: Case, path: _Path, size: Bytes) -> Cycles | None:
    """Return how long a transfer takes; ``None`` without a route."""
    engine, source, destinations, _ = path
    route = case.route(source, destinations)
    return None if route is None else transfer_cycles(case.machine.engines[engine], route, size)


def _defects_of_duration(case: Case, move: Transfer, cycles: Cycles | None) -> Iterator[str]:
    if cycles is not None and move.end - move.start != cycles:
        yield (
            f"it lasts [{move.start}, {move.end}) = {move.end - move.start} cycles, expected "
            f"{cycles} for {case.problem.slices[move.slice].bytes} B by engine "
            f"{case.machine.engines[move.engine].name}"
        )


def _defects_of_shape(case: Case, move: Transfer) -> Iterator[str]:
    engine = case.machine.engines[move.engine]
    part = case.problem.slices[move.slice]
    if engine.longest is not None and part.bytes > engine.longest:
        yield f"{part.bytes} B > {engine.longest} B, the longest transfer of {engine.name}"
    free = (engine.dimensions, engine.congruence, engine.controller) == (None, 1, None)
    if free or not case.holds(move.source, move.slice):
        return
    item = case.problem.buffers[part.buffer].item
    source, strides = case.where(move.slice, move.source)
    for end in move.destinations:
        if case.plan.residencies[end].slice != move.slice:
            continue
        target, target_strides = case.where(move.slice, end)
        copy = strided_copy(part.extent, item, Layout(0, strides), Layout(0, target_strides))
        if engine.dimensions is not None and copy.dimensions > engine.dimensions:
            yield (
                f"its copy to {case.residency(end)} has {copy.dimensions} dimensions > "
                f"{engine.dimensions} of {engine.name}"
            )
        if engine.controller is not None:
            block = Block(
                source=source,
                destination=target,
                run=copy.run,
                loops=copy.loops,
                loads=case.plan.residencies[end].memory == engine.owner,
            )
            for defect in defects_of(block, CONTROLLERS[engine.controller]):
                yield f"copy to {case.residency(end)}: {defect}"
        if (source - target) % engine.congruence:
            yield (
                f"source address {source} and destination address {target} differ modulo "
                f"{engine.congruence} B: {source % engine.congruence} and "
                f"{target % engine.congruence}"
            )


def _violation(rule: str, case: Case, move: Transfer, defect: str) -> Violation:
    objects = (f"transfer {move.index}", f"engine {case.machine.engines[move.engine].name}")
    return Violation(rule, objects, f"transfer {move.index} of {case.slice(move.slice)}: {defect}")


def channels(case: Case) -> Iterator[Violation]:
    """A transfer has a channel that its engine has, alone from its start to its end."""
    per_channel: dict[tuple[int, int], list[Transfer]] = {}
    for move in case.plan.transfers:
        engine = case.machine.engines[move.engine]
        if not 0 <= move.channel < engine.channels:
            yield Violation(
                "channels",
                (f"transfer {move.index}", f"engine {engine.name}"),
                f"transfer {move.index} uses channel {move.channel} of engine {engine.name}, which "
                f"has {engine.channels}, numbered from 0",
            )
        per_channel.setdefault((move.engine, move.channel), []).append(move)
    for (engine_index, channel), moves in sorted(per_channel.items()):
        moves.sort(key=lambda move: (move.start, move.end, move.index))
        busy = moves[0]
        for later in moves[1:]:
            if later.start < busy.end:
                name = case.machine.engines[engine_index].name
                yield Violation(
                    "channels",
                    (f"engine {name}", f"transfer {busy.index}", f"transfer {later.index}"),
                    f"channel {channel} of engine {name} starts transfer {later.index} at cycle "
                    f"{later.start} < {busy.end}, the end of transfer {busy.index}",
                )
            if later.end > busy.end:
                busy = later


def link_rates(case: Case) -> Iterator[Violation]:
    """The rates of the transfers on a link add up to its own at most, at every cycle.

    A transfer holds the least of its engine's rate and its links' rates on each of its links.
    Rates are counted in a unit of which all are whole multiples.
    """
    engines = [engine.rate for engine in case.machine.engines]
    links = [link.rate for link in case.machine.links]
    parts = lcm(*(rate.denominator for rate in (*engines, *links)))
    of_engines, of_links = ([int(rate * parts) for rate in rates] for rates in (engines, links))
    by_path: dict[tuple[EngineIdx, tuple[LinkIdx, ...]], list[Transfer]] = {}
    for move in case.plan.transfers:
        by_path.setdefault((move.engine, move.route), []).append(move)
    per_link: dict[LinkIdx, list[tuple[list[Transfer], int]]] = {}
    for (engine, route), moves in by_path.items():
        held = min([of_engines[engine], *(of_links[link] for link in route)])
        for link in route:
            per_link.setdefault(link, []).append((moves, held))
    for link, on_it in sorted(per_link.items()):
        if not _never_too_many(on_it, of_links[link]):
            yield from _overloads(case, link, on_it, of_links[link], parts)


def _never_too_many(on_it: list[tuple[list[Transfer], int]], capacity: int) -> bool:
    """Say whether there are never more transfers on a link than fit if all have the largest rate.

    Where more than ``most`` are there after ``k`` have ended, ``most + k + 1`` have started, the
    last of them before the end that comes next.
    """
    most = capacity // max(held for _, held in on_it)
    starts = sorted(move.start for moves, _ in on_it for move in moves)
    ends = sorted(move.end for moves, _ in on_it for move in moves)
    return not any(map(lt, starts[most:], ends))


def _overloads(
    case: Case,
    index: LinkIdx,
    on_it: list[tuple[list[Transfer], int]],
    capacity: int,
    parts: int,
) -> Iterator[Violation]:
    """Say at which cycles a link carries too much, and of whom.

    Rates are counted in ``parts`` of a byte per cycle.
    """
    link = case.machine.links[index]
    moves = [(move, held) for some, held in on_it for move in some]
    moves.sort(key=lambda pair: pair[0].index)
    events = []
    for position, (move, amount) in enumerate(moves):
        events.append((move.start, 1, position, amount))
        events.append((move.end, 0, position, -amount))
    load, alive = 0, dict[int, None]()
    for cycle, starts, position, amount in sorted(events):
        load += amount
        if not starts:
            alive.pop(position)
            continue
        alive[position] = None
        if load > capacity:
            name = f"link {link.source} -> {link.target}"
            users = tuple(f"transfer {moves[one][0].index}" for one in alive)
            yield Violation(
                "link_rates",
                (name, *users),
                f"{name} carries {Fraction(load, parts)} B/cycle > {link.rate} B/cycle at cycle "
                f"{cycle} ({', '.join(users)})",
            )
