"""Cores, engines and links: what tasks and transfers hold while they last."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import NamedTuple, TypeAlias

from spmilp.solvers.cpsat.variables import Interval, Literal, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import EngineIdx, LinkIdx

Shares: TypeAlias = dict[tuple[CandidateResidency, TransferOption, object], Fraction]
"""How large a part of a link each transfer holds."""


class Held(NamedTuple):
    """A part of a link that a transfer holds while it is one of some options.

    Parameters
    ----------
    branch
        The literal of a multicast's further branch, for which alone it is held; otherwise ``None``.
    """

    key: CandidateResidency
    options: frozenset[TransferOption]
    branch: Literal | None
    interval: Interval
    rate: Fraction

    @property
    def engines(self) -> frozenset[EngineIdx]:
        """The engines that can make the transfer."""
        return frozenset(option.engine for option in self.options)


def cores_run_one_task_at_a_time(variables: Variables) -> None:
    """The cores of a pool are alike: at most as many tasks at once as there are cores."""
    for pool in variables.tables.pools:
        runs = [task.runs[pool.index] for task in variables.tasks if pool.index in task.runs]
        if len(pool.cores) == 1:
            variables.model.add_no_overlap(runs)
        elif len(runs) > len(pool.cores):
            variables.model.add_cumulative(runs, [1] * len(runs), len(pool.cores))


def add_engines_and_links(variables: Variables) -> None:
    """Never more transfers of an engine than channels, nor more on a link than its rate.

    Channels are alike, so that their number is enough: intervals of which at most ``c`` overlap can
    be coloured with ``c`` colours.
    """
    model, tables = variables.model, variables.tables
    on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
    on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
    for key, residency in variables.residencies.items():
        for engine, some in _by_engine(residency.options).items():
            on_engine[engine].append(variables.transfer_by(key, some))
        for (link, rate), some in _by_link(variables, key).items():
            on_link[link].append(Held(key, some, None, variables.transfer_by(key, some), rate))
        for option in residency.options:
            rate = variables.rate(key, option)
            for link, literal in variables.extra_links.get((key, option), {}).items():
                branch = model.new_optional_interval_var(
                    residency.start, residency.cycles, residency.valid, literal, ""
                )
                on_link[link].append(Held(key, frozenset([option]), literal, branch, rate))
    for engine, intervals in sorted(on_engine.items()):
        channels = tables.machine.engines[engine].channels
        if channels == 1:
            model.add_no_overlap(intervals)
        elif len(intervals) > channels:
            model.add_cumulative(intervals, [1] * len(intervals), channels)
    add_links(variables, on_link)


def add_links(variables: Variables, on_link: Mapping[LinkIdx, list[Held]]) -> None:
    """On no link do transfers hold more than its rate at one time."""
    for link in _that_matter(variables.tables, on_link):
        _add_link(variables, link, on_link[link])


def _by_engine(
    options: Iterable[TransferOption],
) -> dict[EngineIdx, frozenset[TransferOption]]:
    found: dict[EngineIdx, list[TransferOption]] = defaultdict(list)
    for option in options:
        found[option.engine].append(option)
    return {engine: frozenset(some) for engine, some in found.items()}


def _by_link(
    variables: Variables, key: CandidateResidency
) -> dict[tuple[LinkIdx, Fraction], frozenset[TransferOption]]:
    """Return the transfers that hold so much of a link."""
    found: dict[tuple[LinkIdx, Fraction], list[TransferOption]] = defaultdict(list)
    for option in variables.residencies[key].options:
        for link in option.links:
            found[link, variables.rate(key, option)].append(option)
    return {held: frozenset(some) for held, some in found.items()}


def _that_matter(tables: ProblemTables, on_link: Mapping[LinkIdx, list[Held]]) -> list[LinkIdx]:
    """Return the links that can be too narrow though no other link is.

    A link is left out if another one carries all that it carries, and each transfer takes at least
    as large a share of that one.
    """
    shares: dict[LinkIdx, Shares] = {}
    for link, held in sorted(on_link.items()):
        whole = tables.machine.links[link].rate
        if _most_at_once(tables, held) > whole:
            shares[link] = {
                (one.key, option, None if one.branch is None else one.branch.index): one.rate
                / whole
                for one in held
                for option in one.options
            }
    kept = list(shares)
    for link in sorted(shares, key=lambda x: (len(shares[x]), -x)):
        if any(_covers(shares[other], shares[link]) for other in kept if other != link):
            kept.remove(link)
    return kept


def _covers(wide: Shares, narrow: Shares) -> bool:
    return len(wide) >= len(narrow) and all(
        wide.get(one, Fraction(0)) >= share for one, share in narrow.items()
    )


def _add_link(variables: Variables, link: LinkIdx, held: list[Held]) -> None:
    """Rates are counted in a unit of which all are whole multiples."""
    rate = variables.tables.machine.links[link].rate
    unit = lcm(rate.denominator, *(one.rate.denominator for one in held))
    demands = [int(one.rate * unit) for one in held]
    capacity = int(rate * unit)
    if 2 * min(demands) > capacity:
        variables.model.add_no_overlap([one.interval for one in held])
    else:
        variables.model.add_cumulative([one.interval for one in held], demands, capacity)


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
