"""Stretches of the makespan, and what bounds each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spmilp.analysis.chain import Chain
from spmilp.analysis.subject import Part, Subject
from spmilp.units import CoreIdx, Cycles, EngineIdx, LinkIdx

MOST = 16
"""Windows that the makespan is cut into; neighbours that the same part bounds are one phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The cycles ``[start, end)``, in which one part takes most of the critical chain.

    Parameters
    ----------
    chain
        Cycles of the critical chain in the phase by what is done in them; they add up to its
        length.
    cores
        Mean share of the cycles in which the cores are busy, 0 to 1.
    core, engine, link
        The busiest one, ``None`` where none is busy, and ``core_use``, ``engine_use``, ``link_use``
        the share: of the cycles, of the cycles of all channels, of the rate.
    """

    start: Cycles
    end: Cycles
    part: Part
    chain: dict[Part, Cycles]
    cores: float
    core: CoreIdx | None
    core_use: float
    engine: EngineIdx | None
    engine_use: float
    link: LinkIdx | None
    link_use: float


_Sums: TypeAlias = list[Counter[int]]
"""For each window, an amount by the index of a resource."""


def phases_of(subject: Subject, chain: Chain) -> tuple[Phase, ...]:
    """Return the phases of a plan, which fill its makespan."""
    makespan = max(subject.ends, default=0)
    count = min(MOST, makespan)
    edges = [makespan * window // count for window in range(count + 1)] if count else [0]
    parts = _parts(chain, edges)
    of_cores, of_engines, of_links = _use(subject, edges)
    phases = []
    first = 0
    while first < count:
        part = _most(parts[first])
        last = first
        while last + 1 < count and _most(parts[last + 1]) is part:
            last += 1
        windows = slice(first, last + 1)
        start, end = edges[first], edges[last + 1]
        core, core_use = _busiest(
            of_cores[windows], [end - start] * len(subject.problem.machine.cores)
        )
        channels = [each.channels * (end - start) for each in subject.problem.machine.engines]
        engine, engine_use = _busiest(of_engines[windows], channels)
        rates = [rate * (end - start) for rate in subject.link_rates]
        link, link_use = _busiest(of_links[windows], rates)
        done = sum(parts[windows], Counter[Part]())
        busy = sum(sum(window.values()) for window in of_cores[windows])
        phases.append(
            Phase(
                start=start,
                end=end,
                part=part,
                chain={each: done[each] for each in Part},
                cores=busy / (len(subject.problem.machine.cores) * (end - start)),
                core=core,
                core_use=core_use,
                engine=engine,
                engine_use=engine_use,
                link=link,
                link_use=link_use,
            )
        )
        first = last + 1
    return tuple(phases)


def _parts(chain: Chain, edges: Sequence[Cycles]) -> list[Counter[Part]]:
    """Return the cycles of the chain in each window by what is done in them."""
    parts: list[Counter[Part]] = [Counter() for _ in edges[1:]]
    for link in chain.links:
        for window, cycles in _overlaps(link.start, link.end, edges):
            parts[window][link.part] += cycles
        for window, cycles in _overlaps(link.start - link.unused, link.start, edges):
            parts[window][Part.UNUSED] += cycles
    return parts


def _most(parts: Counter[Part]) -> Part:
    return max(Part, key=lambda part: parts[part])


def _use(subject: Subject, edges: Sequence[Cycles]) -> tuple[_Sums, _Sums, _Sums]:
    """Return the cycles of cores and channels, and rate times cycles of links, in each window."""
    cores, engines, links = ([Counter[int]() for _ in edges[1:]] for _ in range(3))
    for placement in subject.plan.placements:
        for window, cycles in _overlaps(placement.start, placement.end, edges):
            cores[window][placement.core] += cycles
    for move in subject.plan.transfers:
        held = subject.held_rates[move.index]
        for window, cycles in _overlaps(move.start, move.end, edges):
            engines[window][move.engine] += cycles
            for link in move.route:
                links[window][link] += cycles * held
    return cores, engines, links


def _overlaps(start: Cycles, end: Cycles, edges: Sequence[Cycles]) -> list[tuple[int, Cycles]]:
    """Return the windows that an interval touches, each with the cycles that it has in it."""
    if start >= end:
        return []
    count, makespan = len(edges) - 1, edges[-1]
    window = max(0, min(start * count // makespan - 1, count - 1))
    found = []
    while window < count and edges[window] < end:
        cycles = min(end, edges[window + 1]) - max(start, edges[window])
        if cycles > 0:
            found.append((window, cycles))
        window += 1
    return found


def _busiest(windows: _Sums, full: Sequence[int]) -> tuple[int | None, float]:
    """Return the resource of which the largest share is used, and the share."""
    used = sum(windows, Counter[int]())
    if not used:
        return None, 0.0
    most = max(sorted(used), key=lambda index: used[index] / full[index])
    return most, used[most] / full[most]
