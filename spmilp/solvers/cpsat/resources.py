"""Engines and links: what transfers hold while they last."""

from collections import defaultdict
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.variables import Interval, Variables
from spmilp.units import EngineIdx, LinkIdx


class Held(NamedTuple):
    """A part of a link that a transfer holds."""

    interval: Interval
    rate: Fraction
    engine: EngineIdx


def add_engines_and_links(model: cp_model.CpModel, tables: Tables, variables: Variables) -> None:
    """Never more transfers of an engine than channels, nor more on a link than its rate.

    Channels are alike, so that their number is enough: intervals of which at most ``c`` overlap can
    be coloured with ``c`` colours.
    """
    on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
    on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
    for key, stay in variables.stays.items():
        for way, interval in stay.transfers.items():
            on_engine[way.engine].append(interval)
            rate = variables.least_rates.get((key, way), way.rate)
            for link in way.links:
                on_link[link].append(Held(interval, rate, way.engine))
            for link, literal in variables.extra_links.get((key, way), {}).items():
                size = model.new_int_var(0, variables.horizon, "")
                also = model.new_optional_interval_var(stay.start, size, stay.valid, literal, "")
                on_link[link].append(Held(also, rate, way.engine))
    for engine, intervals in sorted(on_engine.items()):
        channels = tables.machine.engines[engine].channels
        if channels == 1:
            model.add_no_overlap(intervals)
        elif len(intervals) > channels:
            model.add_cumulative(intervals, [1] * len(intervals), channels)
    for link, held in sorted(on_link.items()):
        _add_link(model, tables, link, held)


def _add_link(model: cp_model.CpModel, tables: Tables, link: LinkIdx, held: list[Held]) -> None:
    """Rates are counted in a unit of which all are whole multiples."""
    rate = tables.machine.links[link].rate
    if _most_at_once(tables, held) <= rate:
        return
    unit = lcm(rate.denominator, *(one.rate.denominator for one in held))
    demands = [int(one.rate * unit) for one in held]
    capacity = int(rate * unit)
    if 2 * min(demands) > capacity:
        model.add_no_overlap([one.interval for one in held])
    else:
        model.add_cumulative([one.interval for one in held], demands, capacity)


def _most_at_once(tables: Tables, held: list[Held]) -> Fraction:
    """Return the most that the engines' channels let these transfers hold together."""
    rates: dict[EngineIdx, list[Fraction]] = defaultdict(list)
    for one in held:
        rates[one.engine].append(one.rate)
    return sum(
        (
            sum(sorted(some, reverse=True)[: tables.machine.engines[engine].channels], Fraction(0))
            for engine, some in rates.items()
        ),
        Fraction(0),
    )
