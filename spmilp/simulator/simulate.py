"""A plan's command lists, run without its times: when everything happens then, and why so late.

Tasks take the cycles of the problem. Transfers take their engine's set-up, send their bytes as fast
as the engine and the links that they share with others allow, and have arrived a latency later. A
channel takes its next transfer then or, if its engine is pipelined, as soon as all is sent.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spmilp.commands.build import build_commands
from spmilp.commands.commands import Command, CommandLists, EventScheme, Move, Run
from spmilp.commands.loop import build_stream_commands, in_turns
from spmilp.errors import ArgumentError
from spmilp.machine.routes import multicast_route, routes_of, transfer_rate
from spmilp.plan.plan import Placement, Plan, Stream, Transfer
from spmilp.plan.running import inferences_at_once, rounds_of, running
from spmilp.problem.problem import Problem
from spmilp.simulator.events import Activity, Events, Send, Step, Work

if TYPE_CHECKING:
    import pandas as pd

MOST_DELAYS = 10
"""Activities that are listed with what they took beyond their planned cycles."""

ROUNDS = 4
"""Rounds of all instances, at least, over which a period is measured."""

BINS, COLUMNS = 10, 100
"""Rows of the histogram of makespans, and the length of one of all runs."""


class Simulation:
    """One run of a plan's command lists: activities of each task, and behind them of each transfer.

    The makespan is when all has ended, in cycles. The chain are numbers of activities, from the
    last that ends back along what let each start.
    """

    def __init__(self, activities: Sequence[Activity]) -> None:
        self.activities = activities
        self.chain: list[int] = []
        here = max(activities, key=lambda each: each.end, default=None)
        self.makespan = 0.0 if here is None else here.end
        while here is not None:
            self.chain.append(here.step.number)
            here = here.after

    def cycles(self) -> dict[str, float]:
        """Return what the cycles of the chain went to.

        ``tasks``, ``set-up``, ``bytes`` at the full rate of engines and links, ``sharing`` of links
        with others, and ``latency``.
        """
        found = dict.fromkeys(("tasks", "set-up", "bytes", "sharing", "latency"), 0.0)
        until = self.makespan
        for number in self.chain:
            one = self.activities[number]
            step, sending = one.step, one.sent - one.start
            parts = (sending, 0.0, 0.0, 0.0, 0.0)
            if isinstance(step, Send):
                sharing = sending - step.setup - step.alone
                parts = (0.0, step.setup, step.alone, sharing, until - one.sent)
            for name, cycles in zip(found, parts, strict=True):
                found[name] += cycles
            until = one.start
        return found


class Steady(NamedTuple):
    """Where a stream has its period: activities so many inferences apart, and the planned one.

    Both take outputs, when all machines are busy: the first inferences are gone, and there are
    inputs yet.
    """

    first: int
    last: int
    apart: int
    planned: int

    def period(self, run: Simulation) -> float:
        """Return the cycles between two inferences."""
        ends = [run.activities[one].end for one in (self.first, self.last)]
        return (ends[1] - ends[0]) / self.apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulations:
    """Runs of a plan's command lists, one without jitter and some with it.

    In ``exact`` all takes what the machine says; ``makespans`` are of the runs in which durations
    vary, sorted; of a stream, of which some inferences run, these are periods in its ``steady``
    state. ``jitter`` is by what share of itself each duration varies, up and down, evenly
    distributed: tasks, and transfers (set-up, latency, and cycles for a byte, by one factor).
    """

    problem: Problem
    plan: Plan
    exact: Simulation
    makespans: tuple[float, ...]
    jitter: float
    steady: Steady | None = None

    @property
    def planned(self) -> int:
        """The makespan of the plan, or the period of the stream."""
        return self.plan.claim.makespan if self.steady is None else self.steady.planned

    @property
    def simulated(self) -> float:
        """The same without jitter."""
        return self.exact.makespan if self.steady is None else self.steady.period(self.exact)

    @property
    def ratio(self) -> float:
        """What is simulated without jitter divided by what is planned."""
        return self.simulated / max(1, self.planned)

    def lines(self) -> list[str]:
        """Return the makespans, and what the cycles went to, as text."""
        exact, what = self.exact, "" if self.steady is None else "a period of "
        spent = (f"{name} {round(cycles):,}" for name, cycles in exact.cycles().items())
        simulated, planned = f"{what}{round(self.simulated):,}", f"{self.planned:,}"
        lines = [
            f"simulated {simulated} cycles, planned {planned} ({self.ratio:.3f})",
            f"on the chain to the end: {', '.join(spent)}",
        ]
        if self.makespans:
            least, most, seeds = self.makespans[0], self.makespans[-1], len(self.makespans)
            lines.append(
                f"with durations that vary by {self.jitter:.3g} up and down, {seeds} runs: from "
                f"{round(least):,} to {round(most):,}"
            )
            for runs, cycles in zip(*np.histogram(self.makespans, BINS), strict=False):
                lines.append(f"{round(cycles):>13,}  {'#' * (COLUMNS * runs // seeds)} {runs}")
        return lines

    def activities(self) -> "pd.DataFrame":
        """Return a row for each task and transfer: when it runs in the plan, and without jitter.

        Columns: ``what``, ``place`` (core, or engine and channel), ``planned_start``,
        ``planned_end``, ``start``, ``end``, ``late`` (``start`` less ``planned_start``) and
        ``longer`` (than planned), in cycles, and ``after``, the task or transfer whose end let it
        start.
        """
        import pandas as pd

        return pd.DataFrame([self._row(one) for one in range(len(self.exact.activities))])

    def delays(self) -> list[dict[str, Any]]:
        """Return the rows of what took longest beyond its planned cycles, on the chain to the end.

        There is nothing where no transfer of the chain shared a link. ``link`` is the one that it
        shared most, ``others`` how many transfers it met there, the rest as in :meth:`activities`.
        """
        rows = [(self._row(number), number) for number in self.exact.chain]
        rows.sort(key=lambda each: -each[0]["longer"])
        return [row | self._met(n) for row, n in rows[:MOST_DELAYS] if row["longer"] >= 1]

    def timed_plan(self) -> Plan:
        """Return the plan with the cycles of the run without jitter, rounded, for figures.

        A residency lasts from the start of what fills it to the last that uses it.
        """
        plan, tasks, timed = self.plan, len(self.plan.placements), list[Any]()
        first, last = dict[int, int](), dict[int, int]()
        for number, one in enumerate(self.exact.activities):
            start, sent, end = (int(cycle + 0.5) for cycle in (one.start, one.sent, one.end))
            filled, used = _residencies(planned := self._planned(number))
            for residencies, until in ((filled, end), (used, sent)):
                for residency in residencies:
                    last[residency] = max(last.get(residency, 0), until)
            first.update(dict.fromkeys(filled, start))
            more: dict[str, Any] = {"sent": sent} if isinstance(planned, Transfer) else {}
            timed.append(replace(planned, start=start, end=end, **more))
        stays = tuple(
            replace(each, start=first.get(each.index, 0), end=max(1, last.get(each.index, 0)))
            for each in plan.residencies
        )
        placements, transfers = tuple(timed[:tasks]), tuple(timed[tasks:])
        return replace(plan, placements=placements, residencies=stays, transfers=transfers)

    def _met(self, number: int) -> dict[str, Any]:
        """Return the link that a transfer shared most while it sent, and with how many others."""
        moves, tasks = self.plan.transfers, len(self.plan.placements)
        mine, route = self.exact.activities[number], set(moves[number - tasks].route)
        met: defaultdict[int, list[float]] = defaultdict(list)
        for move, other in zip(moves, self.exact.activities[tasks:], strict=True):
            both = min(mine.sent, other.sent) - max(mine.first_byte, other.first_byte)
            if both > 0 and other is not mine:
                for link in route.intersection(move.route):
                    met[link].append(both)
        links = self.problem.machine.links
        most = links[max(met, key=lambda each: (sum(met[each]) / links[each].rate, -each))]
        return {"link": f"{most.source} → {most.target}", "others": len(met[most.index])}

    def _row(self, number: int) -> dict[str, Any]:
        machine = self.problem.machine
        one, was = self.exact.activities[number], self._planned(number)
        return {
            "what": self._name(number),
            "place": machine.cores[was.core].name
            if isinstance(was, Placement)
            else f"{machine.engines[was.engine].name}:{was.channel}",
            "planned_start": was.start,
            "planned_end": was.end,
            "start": one.start,
            "end": one.end,
            "late": one.start - was.start,
            "longer": (one.end - one.start) - (was.end - was.start),
            "after": None if one.after is None else self._name(one.after.step.number),
        }

    def _planned(self, number: int) -> Placement | Transfer:
        tasks = self.plan.placements
        return tasks[number] if number < len(tasks) else self.plan.transfers[number - len(tasks)]

    def _name(self, number: int) -> str:
        planned = self._planned(number)
        if isinstance(planned, Placement):
            return self.problem.tasks[planned.task].name
        moved = self.problem.buffers[self.problem.slices[planned.slice].buffer]
        return f"transfer {planned.index} of {moved.name}"


def simulate(problem: Problem, plan: Plan, *, jitter: float = 0.0, seeds: int = 0) -> Simulations:
    """Run a valid plan's command lists, once as the machine says and then with varying times.

    ``jitter`` is the share of each duration by which it varies, at least 0 and below 1; there are
    ``seeds`` runs with varying times, each of another seed. Raises an ``ArgumentError`` if either
    cannot be, and a ``TooManyEventsError`` if the plan has no command lists on its machine.
    """
    if not 0 <= jitter < 1:
        raise ArgumentError(f"jitter: {jitter:g}, expected at least 0 and less than 1 (100 %)")
    if seeds < 0:
        raise ArgumentError(f"seeds: {seeds}, expected at least 0")
    steady = None
    if plan.stream is None:
        lists = build_commands(problem, plan)
    else:
        problem, plan, lists, steady = _stream(problem, plan, plan.stream)
    exact = _run(problem, plan, lists, None, 0.0)
    runs = (_run(problem, plan, lists, Random(seed), jitter) for seed in range(seeds))
    spans = sorted(run.makespan if steady is None else steady.period(run) for run in runs)
    return Simulations(
        problem=problem,
        plan=plan,
        exact=exact,
        makespans=tuple(spans),
        jitter=jitter,
        steady=steady,
    )


def _stream(
    problem: Problem, plan: Plan, stream: Stream
) -> tuple[Problem, Plan, CommandLists, Steady]:
    """Return inferences of a stream as they run, their lists, and where they are steady.

    The application has an input, and takes an output, in a cycle.
    """
    at_once, rounds = inferences_at_once(plan, stream), rounds_of(plan, stream)
    apart = max(ROUNDS, -(-at_once // rounds)) * rounds
    inferences = apart + 3 * at_once
    runs = running(problem, plan, inferences)
    lists = in_turns(build_stream_commands(problem, plan), runs, inferences)
    takes = [task for task, (_, row) in enumerate(runs.tasks) if row == runs.take]
    last = inferences - 1 - at_once
    placements = (
        replace(run, end=run.start + 1) if row >= runs.hand_in else run
        for run, (_, row) in zip(runs.plan.placements, runs.tasks, strict=True)
    )
    steady = Steady(takes[last - apart], takes[last], apart, stream.period)
    return runs.problem, replace(runs.plan, placements=tuple(placements)), lists, steady


def _run(
    problem: Problem, plan: Plan, lists: CommandLists, random: Random | None, jitter: float
) -> Simulation:
    routes, machine, tasks = routes_of(problem.machine), problem.machine, len(plan.placements)
    factors = [
        1.0 if random is None else random.uniform(1 - jitter, 1 + jitter)
        for _ in range(tasks + len(plan.transfers))
    ]

    def step(command: Command) -> Step:
        if isinstance(command, Run):
            placement = plan.placements[command.task]
            # The cycles of a valid plan are the problem's, remote reads included.
            cycles = placement.end - placement.start
            return Work(command.task, factors[command.task] * cycles)
        if not isinstance(command, Move):
            return command
        number = tasks + command.transfer
        move, factor = plan.transfers[command.transfer], factors[number]
        ends = [plan.residencies[one].memory for one in (move.source, *move.destinations)]
        route, engine = multicast_route(routes, ends[0], ends[1:]), machine.engines[move.engine]
        if route is None:
            raise ArgumentError(f"transfer {move.index} has no route")
        return Send(
            number=number,
            setup=factor * engine.setup,
            bytes=problem.slices[move.slice].bytes,
            rate=float(transfer_rate(engine, route)) / factor,
            links=route.links,
            latency=factor * route.latency,
            pipelined=engine.pipelined,
        )

    ways = [[*map(step, one.commands)] for one in lists.lists]
    capacity = [float(link.rate) for link in machine.links]
    events = Events(ways, capacity, takes=lists.scheme is EventScheme.SEMAPHORES)
    stuck = events.run()
    if stuck:
        raise ValueError(f"{len(stuck)} command lists wait for ever: {stuck[0]}")
    return Simulation([events.activities[number] for number in sorted(events.activities)])


def _residencies(one: Placement | Transfer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the residencies that a task or transfer fills, and those that it reads."""
    if isinstance(one, Transfer):
        return one.destinations, (one.source,)
    return (*one.writes, *(() if one.scratch is None else (one.scratch,))), one.reads
