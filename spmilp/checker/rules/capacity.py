"""Rule 7: channels carry one transfer at a time, links never more than their rate."""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from operator import lt

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Transfer
from spmilp.units import EngineIdx, LinkIdx


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
