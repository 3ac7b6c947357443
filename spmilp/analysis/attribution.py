"""Where a plan's time and traffic go: figures of each phase, and DRAM bytes beyond compulsory."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

from spmilp.analysis.analyse import Analysis
from spmilp.analysis.idle import Lack
from spmilp.analysis.space import Space
from spmilp.analysis.subject import Part, Subject
from spmilp.analysis.traffic import Excess
from spmilp.bounds.movement import Movement
from spmilp.units import Bytes, Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseUse:
    """How busy a machine is in the cycles ``[start, end)``, a phase of a plan.

    Parameters
    ----------
    part
        What takes most of the critical chain in it.
    busy, idle
        Cycles of all cores; with the idle ones, by what they lack, they are cores times cycles.
    channels, links
        Shares, 0 to 1, of the cycles of all DMA channels, and of the rates of all links, that
        transfers hold.
    busiest_link, dram_out, dram_in
        The same of the link of which they hold most, and of the rates that all DRAMs together can
        send and receive.
    memory, fullest
        Live bytes over those that plans may use: of all on-chip memories, on average over time; and
        the most of any one of them at any time.
    """

    start: Cycles
    end: Cycles
    part: Part
    busy: Cycles
    idle: dict[Lack, Cycles]
    channels: float
    links: float
    busiest_link: float
    dram_out: float
    dram_in: float
    memory: float
    fullest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Where the time and the traffic of a plan go.

    Parameters
    ----------
    phases
        They fill the makespan.
    compulsory
        DRAM bytes that no plan of the problem avoids.
    excess
        All beyond these.
    """

    cores: int
    phases: tuple[PhaseUse, ...]
    compulsory: Bytes
    excess: tuple[Excess, ...]

    def idle(self) -> dict[Lack, Cycles]:
        """Return the idle cycles of all cores by what they lack."""
        return {lack: sum(phase.idle[lack] for phase in self.phases) for lack in Lack}


def attribution_of(analysis: Analysis) -> Attribution:
    """Return where the time and the traffic of an analysed plan go."""
    subject, phases = analysis.subject, analysis.phases
    edges = [*(phase.start for phase in phases), *(phase.end for phase in phases[-1:])]
    idle = _idle(analysis, edges)
    memory, fullest = _memory(subject, analysis.spaces, edges)
    sends, receives = _rates_of_drams(subject)
    return Attribution(
        cores=len(analysis.cores),
        phases=tuple(
            PhaseUse(
                start=phase.start,
                end=phase.end,
                part=phase.part,
                busy=phase.busy,
                idle=idle[at],
                channels=phase.channels,
                links=phase.links,
                busiest_link=phase.link_use,
                dram_out=_share(phase.dram_out, sends * (phase.end - phase.start)),
                dram_in=_share(phase.dram_in, receives * (phase.end - phase.start)),
                memory=memory[at],
                fullest=fullest[at],
            )
            for at, phase in enumerate(phases)
        ),
        compulsory=sum(row.compulsory for row in analysis.traffic),
        excess=analysis.excess,
    )


def _share(used: int, full: Fraction) -> float:
    return float(used / full) if full else 0.0


def _idle(analysis: Analysis, edges: Sequence[Cycles]) -> list[dict[Lack, Cycles]]:
    """Return the idle cycles of all cores between edges."""
    found = [dict.fromkeys(Lack, 0) for _ in edges[1:]]
    for core in analysis.cores:
        for span in core.spans:
            at = bisect_right(edges, span.start) - 1
            while at < len(found) and edges[at] < span.end:
                cycles = min(span.end, edges[at + 1]) - max(span.start, edges[at])
                found[at][span.lack] += cycles
                at += 1
    return found


def _memory(
    subject: Subject, spaces: Sequence[Space], edges: Sequence[Cycles]
) -> tuple[list[float], list[float]]:
    """Return how full all memories are on average, and the fullest at most, between edges."""
    used, most = [0] * len(edges[1:]), [0.0] * len(edges[1:])
    room = 0
    for space in spaces:
        usable = subject.problem.machine.memories[space.memory].usable
        if not usable:
            continue
        room += usable
        before = _byte_cycles(space, edges)
        for at, (start, end) in enumerate(pairwise(edges)):
            used[at] += before[at + 1] - before[at]
            first = max(0, bisect_right(space.cycles, start) - 1)
            last = bisect_right(space.cycles, end - 1)
            most[at] = max(most[at], max(space.live[first:last], default=0) / usable)
    lengths = (end - start for start, end in pairwise(edges))
    return [
        each / (room * length) if room else 0.0 for each, length in zip(used, lengths, strict=True)
    ], most


def _byte_cycles(space: Space, edges: Sequence[Cycles]) -> list[int]:
    """Return the live bytes times cycles of a memory before each of the edges."""
    steps = zip(space.live, space.cycles, space.cycles[1:], strict=False)
    sums = list(accumulate((live * (end - start) for live, start, end in steps), initial=0))
    found = []
    for edge in edges:
        at = bisect_right(space.cycles, edge) - 1
        found.append(sums[at] + space.live[at] * (edge - space.cycles[at]) if at >= 0 else 0)
    return found


def _rates_of_drams(subject: Subject) -> tuple[Fraction, Fraction]:
    """Return what all DRAMs together can send, and receive, in ``Subject.rate_unit``."""
    movement = Movement(subject.problem)
    drams = [memory.index for memory in subject.problem.machine.drams]
    sends, receives = (
        sum((rate(dram) for dram in drams), Fraction(0))
        for rate in (movement.rate_out, movement.rate_in)
    )
    return sends * subject.rate_unit, receives * subject.rate_unit
