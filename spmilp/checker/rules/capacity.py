"""Rule 7: channels carry one transfer at a time, links never more than their rate."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from math import lcm

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Transfer
from spmilp.units import Cycles, EngineIdx, LinkIdx


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
    held_by: dict[tuple[EngineIdx, tuple[LinkIdx, ...]], int] = {}
    changes: dict[LinkIdx, dict[Cycles, int]] = {}
    for move in case.plan.transfers:
        key = move.engine, move.route
        if key not in held_by:
            held_by[key] = min([of_engines[move.engine], *(of_links[link] for link in move.route)])
        held = held_by[key]
        for link in move.route:
            change = changes.setdefault(link, {})
            change[move.start] = change.get(move.start, 0) + held
            change[move.end] = change.get(move.end, 0) - held
    for link, change in sorted(changes.items()):
        if max(accumulate(change[cycle] for cycle in sorted(change))) > of_links[link]:
            moves = [
                (move, held_by[move.engine, move.route])
                for move in case.plan.transfers
                for held in move.route
                if held == link
            ]
            yield from _overloads(case, link, moves, of_links[link], parts)


def _overloads(
    case: Case, index: LinkIdx, moves: list[tuple[Transfer, int]], capacity: int, parts: int
) -> Iterator[Violation]:
    """Say at which cycles a link carries too much, and of whom.

    Rates are counted in ``parts`` of a byte per cycle.
    """
    link = case.machine.links[index]
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
