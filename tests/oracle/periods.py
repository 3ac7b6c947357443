"""The least period of a stream, by trying everything: for tiny problems whose data has ample room.

All constants are permanent then. An activity may wait for as many periods as it likes, so order is
no matter but around states: what counts is on which core each task runs, which transfers follow
from that, and at which cycles of the period these start. A state is what the inference before has
written: on that core it stays, others load it. So whole periods pass around each circle of
activities that goes through states, at most as many as states. The machine has one engine for each
scratchpad, to and from DRAM only; what a task reads from another core's scratchpad goes through
DRAM. Results are read as wholes; of inputs a scratchpad gets the slices read there, or the whole.
Memories count nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count, product
from typing import NamedTuple, TypeAlias

from spmilp.machine.routes import routes_of, transfer_cycles, transfer_rate
from spmilp.problem.problem import Problem
from tests.oracle.small import DRAM


class Activity(NamedTuple):
    """A transfer, or a task on a core, which is like an engine with one channel and no links.

    It holds a channel at first, its rate on links from ``first`` to ``sent``, and takes ``cycles``.
    """

    engine: int
    busy: int
    first: int
    sent: int
    cycles: int
    links: tuple[int, ...] = ()
    rate: Fraction = Fraction(0)


class Wait(NamedTuple):
    """Activity ``after`` starts when ``before`` of so many inferences ``earlier`` has ended."""

    before: int
    after: int
    earlier: bool


Choice: TypeAlias = tuple[tuple[Activity, ...], tuple[Wait, ...]]


def least_period(problem: Problem) -> int:
    """Return the least period of all streams of a problem."""
    kinds, tasks = [core.kind for core in problem.machine.cores], problem.tasks
    able = [[c for c, kind in enumerate(kinds) if t.cycles[kind] is not None] for t in tasks]
    choices = {choice for cores in product(*able) for choice in _choices(problem, cores)}
    return next(
        period
        for period in count(1)
        if any(_Period(problem, period, *choice).is_possible() for choice in choices)
    )


def _choices(problem: Problem, cores: tuple[int, ...]) -> Iterator[Choice]:
    """Yield tasks and transfers of each inference, and what of them waits around circles."""
    here = [problem.machine.cores[core].memory for core in cores]
    writers, states, engines = problem.writers(), problem.states(), len(problem.machine.engines)
    runs = list[Activity]()
    for task, core in zip(problem.tasks, cores, strict=True):
        cycles = task.cycles[problem.machine.cores[core].kind] or 0
        runs.append(Activity(engines + core, cycles, 0, 0, cycles))
    waits = list[Wait]()
    loads: dict[tuple[int, int], dict[int, list[tuple[int, bool]]]] = {}
    for task, memory in zip(problem.tasks, here, strict=True):
        for read in task.reads:
            buffer = problem.buffers[problem.slices[read].buffer]
            origin, is_state = states.get(buffer.index, buffer.index), buffer.index in states
            writer = writers[origin]
            if writer is not None and here[writer] == memory:
                waits.append(Wait(writer, task.index, is_state))
            elif not buffer.is_constant:
                part = origin if read == buffer.index else read
                readers = loads.setdefault((origin, memory), {}).setdefault(part, [])
                readers.append((task.index, is_state))
    moved, stores = {buffer for buffer, _ in loads}, dict[int, int]()
    for buffer in problem.buffers:
        writer, stays = writers[buffer.index], buffer.index in states.values()
        if writer is not None and (
            buffer.index in moved or (buffer.ends_in is not None and not stays)
        ):
            stores[buffer.index] = len(runs)
            waits.append(Wait(writer, len(runs), False))
            runs.append(_move(problem, here[writer], DRAM, buffer.bytes))
    # A whole serves whoever reads a part of it.
    ways = [({buffer}, set(parts)) for (buffer, _), parts in loads.items()]
    for way in product(*ways):
        all_runs, all_waits = list(runs), list(waits)
        for ((buffer, memory), parts), some in zip(loads.items(), way, strict=True):
            for part in sorted(some):
                own = list(parts) if some == {buffer} else [part]
                for task, is_state in (reader for one in own for reader in parts[one]):
                    all_waits.append(Wait(len(all_runs), task, is_state))
                if buffer in stores:
                    all_waits.append(Wait(stores[buffer], len(all_runs), False))
                all_runs.append(_move(problem, DRAM, memory, problem.slices[part].bytes))
        yield tuple(all_runs), tuple(_around_circles(all_waits))


def _around_circles(waits: list[Wait]) -> Iterator[Wait]:
    reached = {(wait.after, wait.before) for wait in waits if wait.after == wait.before}
    more = {(wait.before, wait.after) for wait in waits}
    while more - reached:
        reached |= more
        more = {(a, d) for (a, b), (c, d) in product(reached, reached) if b == c}
    yield from (wait for wait in waits if (wait.after, wait.before) in reached)


def _move(problem: Problem, source: int, target: int, size: int) -> Activity:
    routes = routes_of(problem.machine)
    route, (engine,) = routes.between(source, target), routes.engines_for(source, target)
    assert route is not None
    times = transfer_cycles(problem.machine.engines[engine], route, size)
    rate = transfer_rate(problem.machine.engines[engine], route)
    return Activity(
        engine, times.busy, times.on_links, times.sent, times.arrived, route.links, rate
    )


class _Period:
    """Tries starts of activities in a period, at which channels and links suffice."""

    def __init__(
        self, problem: Problem, period: int, runs: tuple[Activity, ...], waits: tuple[Wait, ...]
    ) -> None:
        machine = problem.machine
        many = [*(one.channels for one in machine.engines), *(1 for _ in machine.cores)]
        self._period, self._runs, self._waits = period, runs, waits
        self._channels = [[[False] * period for _ in range(some)] for some in many]
        self._links = [[link.rate] * period for link in machine.links]
        self._starts = dict[int, int]()

    def is_possible(self) -> bool:
        """Say whether there are such starts: what waits on a circle has them first.

        Of the others tasks and transfers are no matter to each other.
        """
        for engine, channels in enumerate(self._channels):
            own = [run.busy for run in self._runs if run.engine == engine]
            if max(own, default=0) > self._period or sum(own) > self._period * len(channels):
                return False
        around = sorted({wait.after for wait in self._waits})
        others = [number for number in range(len(self._runs)) if number not in around]
        tasks = [number for number in others if not self._runs[number].links]
        moves = [number for number in others if self._runs[number].links]

        def others_fit() -> bool:
            return all(self._fits(some, lambda: True, not around) for some in (tasks, moves))

        return self._comes_around() and self._fits(around, others_fit, True)

    def _fits(self, some: list[int], then: Callable[[], bool], turns: bool) -> bool:
        """Say whether activities, and then others, have starts; if all ``turns``, the first has 0.

        What has no start on a channel where it begins as late as others end has none: none is left
        out.
        """
        if not some:
            return then()
        number, *others = some
        run, period = self._runs[number], self._period
        for start in range(1 if turns else period):
            self._starts[number] = start
            held = [(start + at) % period for at in range(run.busy)]
            sends = Counter((start + at) % period for at in range(run.first, run.sent))
            lacks = any(
                self._links[n][at] < run.rate * many
                for n in run.links
                for at, many in sends.items()
            )
            for channel in () if lacks or not self._comes_around() else self._channels[run.engine]:
                if any(channel[at] for at in held):
                    continue
                self._take(run, channel, held, sends, 1)
                found = self._fits(others, then, False)
                self._take(run, channel, held, sends, -1)
                if found:
                    del self._starts[number]
                    return True
            del self._starts[number]
        return False

    def _take(
        self, run: Activity, channel: list[bool], held: list[int], sends: Counter[int], sign: int
    ) -> None:
        for at in held:
            channel[at] = sign > 0
        for link, (at, many) in product(run.links, sends.items()):
            self._links[link][at] -= sign * run.rate * many

    def _comes_around(self) -> bool:
        """Say whether all can wait as they must, in whichever periods, given the starts so far."""
        least = [0] * len(self._runs)
        for _ in range(3 * len(least)):
            before = list(least)
            for first, second, earlier in self._waits:
                due = least[first] + self._runs[first].cycles - earlier * self._period
                least[second] = max(least[second], due)
                start = self._starts.get(second, least[second])
                least[second] += (start - least[second]) % self._period
            if least == before:
                return True
        return False
