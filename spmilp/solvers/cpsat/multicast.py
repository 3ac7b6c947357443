"""Transfers with several destinations.

The transfer belongs to the residency in the lowest memory among its destinations, the *root*; the
others are its *members*. It lasts ``set-up + greatest latency + most cycles of moving``, for the
rate of a multicast is the least of its routes' rates; it holds one channel, and each link of the
union of the routes once.

Where the routes of one engine have different rates (:func:`rates_differ`), a multicast holds more
than it needs in a model of plans: the root's own rate. In a relaxation it holds the least.
"""

from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple

from spmilp.machine.routes import transfer_cycles, transfer_rate
from spmilp.solvers.cpsat.variables import Literal, ResidencyVars, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, LinkIdx


class _Branch(NamedTuple):
    """The part of a multicast to one of its members, if that joins."""

    joins: Literal
    latency: Cycles
    moving: Cycles
    links: tuple[LinkIdx, ...]
    rate: Fraction


def add_multicasts(variables: Variables) -> None:
    """Tie members to their roots, and lengthen the roots' transfers."""
    roots: dict[CandidateResidency, list[ResidencyVars]] = defaultdict(list)
    for member in variables.residencies.values():
        for root, options in member.lifecycle.roots:
            roots[root].append(member)
            _tie(variables, member, variables.residencies[root], options)
    for key, members in roots.items():
        multicast = variables.residencies[key]
        for option in multicast.options:
            _lengthen(variables, multicast, option, members)
        _one_in_each_memory(variables, multicast, members)


def _tie(
    variables: Variables,
    member: ResidencyVars,
    root: ResidencyVars,
    options: tuple[TransferOption, ...],
) -> None:
    """A member begins and is valid with its root, whose transfer is one that serves both."""
    model, joins = variables.model, member.roots[root.key]
    model.add_implication(joins, root.moved)
    model.add(member.start == root.start).only_enforce_if(joins)
    model.add(member.valid == root.valid).only_enforce_if(joins)
    for option, taken in root.options.items():
        if option not in options:
            model.add_bool_or([~joins, ~taken])


def _one_in_each_memory(
    variables: Variables, root: ResidencyVars, members: list[ResidencyVars]
) -> None:
    """The destinations of a transfer lie in different memories."""
    memories: dict[int, list[Literal]] = defaultdict(list)
    for member in members:
        memories[member.key.memory].append(member.roots[root.key])
    for literals in memories.values():
        if len(literals) > 1:
            variables.model.add_at_most_one(literals)


def _lengthen(
    variables: Variables,
    root: ResidencyVars,
    option: TransferOption,
    members: list[ResidencyVars],
) -> None:
    """Let the transfer last as long as its longest part, and hold the links of all parts."""
    model, key, taken = variables.model, root.key, root.options[option]
    branches = [
        _branch(variables.tables, option, member, member.roots[key])
        for member in members
        if option in dict(member.lifecycle.roots)[key]
    ]
    if not branches:
        model.add(root.valid == root.start + option.cycles).only_enforce_if(taken)
        return
    setup = option.cycles - option.latency - option.moving
    longest = max(option.latency, *(one.latency for one in branches))
    latency = model.new_int_var(option.latency, longest, f"{key} latency")
    longest = max(option.moving, *(one.moving for one in branches))
    moving = model.new_int_var(option.moving, longest, f"{key} moving")
    model.add(root.valid == root.start + setup + latency + moving).only_enforce_if(taken)
    if variables.structure.scope.relaxed:
        variables.least_rates[key, option] = min(option.rate, *(one.rate for one in branches))
    links: dict[LinkIdx, list[Literal]] = defaultdict(list)
    for one in branches:
        model.add(latency >= one.latency).only_enforce_if(one.joins)
        model.add(moving >= one.moving).only_enforce_if(one.joins)
        for link in one.links:
            if link not in option.links:
                links[link].append(one.joins)
    variables.extra_links[key, option] = {
        link: _holds(variables, taken, joins, f"{key} also {link}") for link, joins in links.items()
    }


def _holds(variables: Variables, taken: Literal, joins: list[Literal], name: str) -> Literal:
    """Return a literal that is true when the option is taken and one of the members joins."""
    held = variables.literal(name)
    variables.model.add_implication(held, taken)
    variables.model.add_bool_or([*joins, ~held])
    for one in joins:
        variables.model.add_bool_or([~taken, ~one, held])
    return held


def _branch(
    tables: ProblemTables, option: TransferOption, member: ResidencyVars, joins: Literal
) -> _Branch:
    route = tables.routes.between(option.source, member.key.memory)
    if route is None:
        return _Branch(joins, 0, 0, (), option.rate)
    engine = tables.machine.engines[option.engine]
    cycles = transfer_cycles(engine, route, tables.problem.slices[member.key.slice].bytes)
    moving = cycles - engine.setup - route.latency
    return _Branch(joins, route.latency, moving, route.links, transfer_rate(engine, route))


def rates_differ(tables: ProblemTables) -> bool:
    """Say whether some engine that can multicast has routes of different rates."""
    memories = range(len(tables.machine.memories))
    for engine in tables.machine.engines:
        if not engine.multicast:
            continue
        rates = {
            transfer_rate(engine, route)
            for source in memories
            for there in memories
            if engine.serves(source, there)
            for route in (tables.routes.between(source, there),)
            if route is not None
        }
        if len(rates) > 1:
            return True
    return False
