"""The least period of a stream, by trying everything: for tiny problems whose data has ample room.

All constants are permanent then. An activity may wait for as many periods as it likes, so order is
no matter: what counts is on which core each task runs, which transfers follow from that, and at
which cycles of the period these start. The machine has one engine for each scratchpad, to and from
DRAM only; what a task reads from another core's scratchpad goes through DRAM. Results are read as
wholes; of inputs a scratchpad gets the slices read there, or the whole. Memories count nothing.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import count, product
from typing import NamedTuple

from spmilp.machine.routes import routes_of, transfer_cycles, transfer_rate
from spmilp.problem.problem import Problem
from tests.oracle.small import DRAM


class Move(NamedTuple):
    """A transfer: it holds a channel of an engine at first, and its rate on links in between."""

    engine: int
    busy: int
    first: int
    sent: int
    links: tuple[int, ...]
    rate: Fraction


def least_period(problem: Problem) -> int:
    """Return the least period of all streams of a problem."""
    kinds, tasks = [core.kind for core in problem.machine.cores], problem.tasks
    able = [[c for c, kind in enumerate(kinds) if t.cycles[kind] is not None] for t in tasks]
    choices = set[tuple[int, tuple[Move, ...]]]()
    for cores in product(*able):
        work = Counter[int]()
        for task, core in zip(tasks, cores, strict=True):
            work[core] += task.cycles[kinds[core]] or 0
        choices |= {(max(work.values()), tuple(sorted(some))) for some in _moves(problem, cores)}
    return next(
        period
        for period in count(1)
        if any(most <= period and _fit(problem, period, moves) for most, moves in choices)
    )


def _moves(problem: Problem, cores: tuple[int, ...]) -> Iterator[list[Move]]:
    """Yield the transfers that each inference may do with."""
    here = [problem.machine.cores[core].memory for core in cores]
    writers, stored = problem.writers(), list[Move]()
    loads: dict[tuple[int, int], set[int]] = {}
    for task, memory in zip(problem.tasks, here, strict=True):
        for read in task.reads:
            buffer = problem.buffers[problem.slices[read].buffer]
            writer = writers[buffer.index]
            if not buffer.is_constant and (writer is None or here[writer] != memory):
                loads.setdefault((buffer.index, memory), set()).add(read)
    moved = {buffer for buffer, _ in loads}
    for buffer in problem.buffers:
        writer = writers[buffer.index]
        if writer is not None and (buffer.ends_in is not None or buffer.index in moved):
            stored.append(_move(problem, here[writer], DRAM, buffer.bytes))
    ways = [
        [
            [_move(problem, DRAM, memory, problem.slices[one].bytes) for one in some]
            for some in parts
        ]
        for (buffer, memory), slices in loads.items()
        for parts in [({buffer}, slices)]
    ]
    for way in product(*ways):
        yield [*stored, *(move for some in way for move in some)]


def _move(problem: Problem, source: int, target: int, size: int) -> Move:
    routes = routes_of(problem.machine)
    route, (engine,) = routes.between(source, target), routes.engines_for(source, target)
    assert route is not None
    times = transfer_cycles(problem.machine.engines[engine], route, size)
    rate = transfer_rate(problem.machine.engines[engine], route)
    return Move(engine, times.busy, times.on_links, times.sent, route.links, rate)


def _fit(problem: Problem, period: int, moves: tuple[Move, ...]) -> bool:
    """Say whether transfers have starts in a period at which channels and links suffice.

    What has no start on a channel where it begins as late as others end has none: none is left out.
    """
    machine = problem.machine
    for engine in machine.engines:
        own = [move.busy for move in moves if move.engine == engine.index]
        if max(own, default=0) > period or sum(own) > period * engine.channels:
            return False
    channels = [[[False] * period for _ in range(one.channels)] for one in machine.engines]
    links = [[link.rate] * period for link in machine.links]

    def placed(number: int) -> bool:
        if number == len(moves):
            return True
        move = moves[number]
        # The first one may start whenever it likes: all others turn with it.
        for start in range(period if number else 1):
            held = [(start + at) % period for at in range(move.busy)]
            sends = Counter((start + at) % period for at in range(move.first, move.sent))
            if any(
                links[n][at] < move.rate * many for n in move.links for at, many in sends.items()
            ):
                continue
            for channel in channels[move.engine]:
                if any(channel[at] for at in held):
                    continue
                for at in held:
                    channel[at] = True
                for link, (at, many) in product(move.links, sends.items()):
                    links[link][at] -= move.rate * many
                if placed(number + 1):
                    return True
                for at in held:
                    channel[at] = False
                for link, (at, many) in product(move.links, sends.items()):
                    links[link][at] += move.rate * many
        return False

    return placed(0)
