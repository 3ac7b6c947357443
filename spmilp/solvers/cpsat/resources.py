"""Engines and links: what transfers hold while they last."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.variables import Interval, Literal, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import EngineIdx, LinkIdx


class Held(NamedTuple):
    """A part of a link that a transfer holds while it takes one of some ways.

    Parameters
    ----------
    also
        The literal of a multicast's further branch, for which alone it is held; otherwise ``None``.
    """

    stay: CandidateResidency
    ways: frozenset[TransferOption]
    also: Literal | None
    interval: Interval
    rate: Fraction
    engines: frozenset[EngineIdx]


def add_engines_and_links(
    model: cp_model.CpModel, tables: ProblemTables, variables: Variables
) -> None:
    """Never more transfers of an engine than channels, nor more on a link than its rate.

    Channels are alike, so that their number is enough: intervals of which at most ``c`` overlap can
    be coloured with ``c`` colours.
    """
    on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
    on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
    for key, stay in variables.stays.items():
        for engine, ways in _by_engine(stay.moves).items():
            on_engine[engine].append(variables.part(key, frozenset(ways)))
        for (link, rate), ways in _by_link(variables, key, stay.moves).items():
            some = frozenset(ways)
            engines = frozenset(way.engine for way in ways)
            on_link[link].append(Held(key, some, None, variables.part(key, some), rate, engines))
        for way in stay.moves:
            rate = variables.least_rates.get((key, way), way.rate)
            for link, literal in variables.extra_links.get((key, way), {}).items():
                also = model.new_optional_interval_var(
                    stay.start, stay.cycles, stay.valid, literal, ""
                )
                alone = frozenset([way])
                on_link[link].append(Held(key, alone, literal, also, rate, frozenset([way.engine])))
    for engine, intervals in sorted(on_engine.items()):
        channels = tables.machine.engines[engine].channels
        if channels == 1:
            model.add_no_overlap(intervals)
        elif len(intervals) > channels:
            model.add_cumulative(intervals, [1] * len(intervals), channels)
    add_links(model, tables, on_link)


def add_links(
    model: cp_model.CpModel, tables: ProblemTables, on_link: Mapping[LinkIdx, list[Held]]
) -> None:
    """On no link do transfers hold more than its rate at one time."""
    for link in _that_matter(tables, on_link):
        _add_link(model, tables, link, on_link[link])


def _by_engine(ways: Iterable[TransferOption]) -> dict[EngineIdx, list[TransferOption]]:
    found: dict[EngineIdx, list[TransferOption]] = defaultdict(list)
    for way in ways:
        found[way.engine].append(way)
    return found


def _by_link(
    variables: Variables, key: CandidateResidency, ways: Iterable[TransferOption]
) -> dict[tuple[LinkIdx, Fraction], list[TransferOption]]:
    """Return the ways that hold so much of a link."""
    found: dict[tuple[LinkIdx, Fraction], list[TransferOption]] = defaultdict(list)
    for way in ways:
        rate = variables.least_rates.get((key, way), way.rate)
        for link in way.links:
            found[link, rate].append(way)
    return found


def _that_matter(tables: ProblemTables, on_link: Mapping[LinkIdx, list[Held]]) -> list[LinkIdx]:
    """Return the links that can be too narrow though no other link is.

    A link is left out if another one carries all that it carries, and each transfer takes at least
    as large a share of that one.
    """
    shares: dict[LinkIdx, dict[tuple[CandidateResidency, TransferOption, object], Fraction]] = {}
    for link, held in sorted(on_link.items()):
        whole = tables.machine.links[link].rate
        if _most_at_once(tables, held) > whole:
            shares[link] = {
                (one.stay, way, None if one.also is None else one.also.index): one.rate / whole
                for one in held
                for way in one.ways
            }
    kept = list(shares)
    for link in sorted(shares, key=lambda x: (len(shares[x]), -x)):
        if any(_covers(shares[other], shares[link]) for other in kept if other != link):
            kept.remove(link)
    return kept


def _covers(
    wide: dict[tuple[CandidateResidency, TransferOption, object], Fraction],
    narrow: dict[tuple[CandidateResidency, TransferOption, object], Fraction],
) -> bool:
    return len(wide) >= len(narrow) and all(
        wide.get(one, Fraction(0)) >= share for one, share in narrow.items()
    )


def _add_link(
    model: cp_model.CpModel, tables: ProblemTables, link: LinkIdx, held: list[Held]
) -> None:
    """Rates are counted in a unit of which all are whole multiples."""
    rate = tables.machine.links[link].rate
    unit = lcm(rate.denominator, *(one.rate.denominator for one in held))
    demands = [int(one.rate * unit) for one in held]
    capacity = int(rate * unit)
    if 2 * min(demands) > capacity:
        model.add_no_overlap([one.interval for one in held])
    else:
        model.add_cumulative([one.interval for one in held], demands, capacity)


def _most_at_once(tables: ProblemTables, held: list[Held]) -> Fraction:
    """Return a sum that these transfers cannot exceed, for their engines have so many channels.

    A transfer that several engines can make counts for each of them.
    """
    rates: dict[EngineIdx, list[Fraction]] = defaultdict(list)
    for one in held:
        for engine in one.engines:
            rates[engine].append(one.rate)
    return sum(
        (
            sum(sorted(some, reverse=True)[: tables.machine.engines[engine].channels], Fraction(0))
            for engine, some in rates.items()
        ),
        Fraction(0),
    )
