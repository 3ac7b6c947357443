"""Why a stream of inferences has its period: what is busiest in it, and what is permanent."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from spmilp import quantities
from spmilp.explaining.text import Explanation, list_of, network_name, paragraph, section
from spmilp.plan.latencies import Latency, latencies
from spmilp.plan.plan import Plan, Stream
from spmilp.plan.turns import permanent_bytes
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Cycles

MOST_ROWS = 8
"""Lines of what is busy."""


class Use(NamedTuple):
    """A core, a DMA channel or a link, and for how many cycles of each period it is busy.

    Of a link, cycles at its full rate. ``things`` is the number of tasks or transfers.
    """

    kind: str
    name: str
    cycles: Cycles
    things: int

    def said(self) -> str:
        """Say what does so many things."""
        things = quantities.count(self.things, "task" if self.kind == "core" else "transfer")
        return f"{self.kind} {self.name}: {things}"


def uses(problem: Problem, plan: Plan, stream: Stream) -> list[Use]:
    """Return all that is busy in a period, the busiest first."""
    machine = problem.machine
    cycles, count = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    of_links = dict[tuple[str, str], Fraction]()
    for run in plan.placements:
        key = "core", machine.cores[run.core].name
        cycles[key] += run.end - run.start
        count[key] += 1
    for move in plan.transfers:
        if move.start < stream.begins:
            continue
        engine = machine.engines[move.engine]
        key = "channel", f"{engine.name}:{move.channel}" if engine.channels > 1 else engine.name
        cycles[key] += engine.busy_until(move.sent, move.end) - move.start
        count[key] += 1
        held = min([engine.rate, *(machine.links[link].rate for link in move.route)])
        for link in (machine.links[index] for index in move.route):
            key = "link", f"{link.source} → {link.target}"
            sending = (move.sent - move.start - engine.setup) * held / link.rate
            of_links[key] = of_links.get(key, Fraction(0)) + sending
            count[key] += 1
    cycles.update({key: round(busy) for key, busy in of_links.items()})
    found = [Use(*key, busy, count[key]) for key, busy in cycles.items()]
    return sorted(found, key=lambda use: (-use.cycles, use.kind, use.name))


def per_second(rate: float) -> str:
    """Return a number of inferences in a second as people read it."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def stream_rows(problem: Problem, plan: Plan, stream: Stream) -> list[tuple[str, str, str]]:
    """Return the figures of a stream: name, value, and a remark."""
    clock, latency = problem.machine.frequency, plan.claim.makespan
    rate, seconds = "", ""
    if clock:
        shown = per_second(clock / stream.period)
        rate = f"{shown} inferences per second at {quantities.frequency(clock)}"
        seconds = f"{quantities.time(latency / clock)}; "
    at_once = quantities.count(-(-latency // stream.period), "inference")
    busiest = uses(problem, plan, stream)[0]
    bytes_of = permanent_bytes(problem, plan)
    largest = sorted(bytes_of.items(), key=lambda one: (-one[1], one[0]))
    memories = [
        f"{quantities.size(size)} in {problem.machine.memories[memory].name}"
        for memory, size in largest
    ]
    return [
        ("period", f"{stream.period:,} cycles", rate),
        ("latency", f"{latency:,} cycles", f"{seconds}{at_once} at a time"),
        ("busiest", quantities.percent(busiest.cycles / stream.period), busiest.said()),
        ("permanent", quantities.size(sum(bytes_of.values())), list_of(memories)),
    ]


def stream_data(problem: Problem, plan: Plan) -> dict[str, Any] | None:
    """Return the same as JSON knows it; ``None`` of a plan for one inference."""
    stream, memories = plan.stream, problem.machine.memories
    if stream is None:
        return None
    clock = problem.machine.frequency
    return {
        "period": stream.period,
        "latency": plan.claim.makespan,
        "inferences_per_second": clock and clock / stream.period,
        "permanent": {
            memories[memory].name: size
            for memory, size in sorted(permanent_bytes(problem, plan).items())
        },
        "busiest": [use._asdict() for use in uses(problem, plan, stream)[:MOST_ROWS]],
    }


def network_rows(problem: Problem, plan: Plan) -> list[tuple[str, str, str]]:
    """Return the figures of each of several networks: name, latency, deadline and rate."""
    return [
        (each.member.name, f"{each.cycles:,} cycles", "; ".join(_remarks(problem, plan, each)))
        for each in latencies(problem, plan)
    ]


def _remarks(problem: Problem, plan: Plan, each: Latency) -> Iterator[str]:
    member, clock = each.member, problem.machine.frequency
    if each.shortfall:
        yield f"deadline {member.deadline:,} missed by {each.shortfall:,}"
    elif member.deadline is not None:
        yield f"deadline {member.deadline:,} met"
    if plan.stream is not None:
        rate = f"{quantities.count(member.rate, 'inference')} in a period"
        second = clock and f", {per_second(member.rate * clock / plan.stream.period)} per second"
        yield rate + (second or "")


def of_networks(problem: Problem, plan: Plan) -> list[str]:
    """Return the same as a section of an explanation, if there are several networks."""
    lines = [
        line
        for name, cycles, remark in network_rows(problem, plan)
        for line in paragraph(remark, f"{name:<16} {cycles:>18}  ")
    ]
    return [section("Networks", lines)] if lines else []


def network_data(problem: Problem, plan: Plan) -> list[dict[str, Any]] | None:
    """Return the same as JSON knows it; ``None`` of a problem of one network."""
    clock, stream = problem.machine.frequency, plan.stream
    return [
        {
            "network": each.member.name,
            "rate": each.member.rate,
            "inferences_per_second": clock and stream and each.member.rate * clock / stream.period,
            "latency": each.cycles,
            "deadline": each.member.deadline,
            "shortfall": each.shortfall,
        }
        for each in latencies(problem, plan)
    ] or None


def why_period(problem: Problem, plan: Plan, stream: Stream) -> Explanation:
    """Explain the period of a stream that the checker has accepted."""
    claim, name = plan.claim, f"{network_name(problem)} on {problem.machine.name}"
    title = f"{name}: why a period takes {stream.period:,} cycles"
    if problem.objective.first is Quantity.PERIOD:
        title += f"\n(no stream with these tiles takes less than {claim.bound:,}: "
        title += f"{claim.bound_source})"
    figures, lines = list[str](), list[str]()
    for figure, value, remark in stream_rows(problem, plan, stream)[1:]:
        figures += paragraph(remark or "nothing", f"{figure:<9} {value:>14}  ")
    for use in uses(problem, plan, stream)[:MOST_ROWS]:
        share = quantities.percent(use.cycles / stream.period)
        lines += paragraph(use.said(), f"{use.cycles:>11,} {share:>6}  ")
    parts = [title, section("Figures", figures), *of_networks(problem, plan)]
    return Explanation(
        text="\n\n".join([*parts, section("What is busiest in a period", lines)]),
        data={"problem": problem.name, "machine": problem.machine.name, "status": "slow"}
        | {"bound": claim.bound, "bound_source": claim.bound_source}
        | {"networks": network_data(problem, plan)}
        | (stream_data(problem, plan) or {}),
    )
