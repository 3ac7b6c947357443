"""Transfers with several destinations.

The transfer belongs to the stay in the lowest memory among its destinations, the *leader*; the
others ride on it. It lasts ``set-up + greatest latency + most cycles of moving``, for the rate of a
multicast is the least of its routes' rates; it holds one channel, and each link of the union of the
routes once.

Where the routes of one engine have different rates (:func:`rates_differ`), a multicast holds more
than it needs in a model of plans: the leader's own rate. In a relaxation it holds the least.
"""

from collections import defaultdict
from fractions import Fraction

from ortools.sat.python import cp_model

from spmilp.machine.routes import transfer_cycles, transfer_rate
from spmilp.solvers.cpsat.variables import Literal, StayVars, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, LinkIdx


def add_multicasts(model: cp_model.CpModel, tables: ProblemTables, variables: Variables) -> None:
    """Tie riders to their leaders, and lengthen the leaders' transfers."""
    riders: dict[CandidateResidency, list[StayVars]] = defaultdict(list)
    for stay in variables.stays.values():
        for leader, ways in stay.shape.leaders:
            riders[leader].append(stay)
            _tie(model, stay, variables.stays[leader], stay.rides[leader], ways)
    for key, some in riders.items():
        leading = variables.stays[key]
        for way, move in leading.moves.items():
            _lengthen(model, tables, variables, leading, way, move, some)
        _one_in_each_memory(model, key, some)


def _tie(
    model: cp_model.CpModel,
    rider: StayVars,
    leader: StayVars,
    rides: Literal,
    ways: tuple[TransferOption, ...],
) -> None:
    """A rider begins and is valid with its leader, which takes a way that serves both."""
    model.add_implication(rides, leader.moved)
    model.add(rider.start == leader.start).only_enforce_if(rides)
    model.add(rider.valid == leader.valid).only_enforce_if(rides)
    for way, move in leader.moves.items():
        if way not in ways:
            model.add_bool_or([~rides, ~move])


def _one_in_each_memory(
    model: cp_model.CpModel, leader: CandidateResidency, riders: list[StayVars]
) -> None:
    """The destinations of a transfer lie in different memories."""
    memories: dict[int, list[Literal]] = defaultdict(list)
    for rider in riders:
        memories[rider.shape.stay.memory].append(rider.rides[leader])
    for literals in memories.values():
        if len(literals) > 1:
            model.add_at_most_one(literals)


def _lengthen(
    model: cp_model.CpModel,
    tables: ProblemTables,
    variables: Variables,
    leader: StayVars,
    way: TransferOption,
    move: Literal,
    riders: list[StayVars],
) -> None:
    """Let the transfer last as long as its longest part, and hold the links of all parts."""
    key = leader.shape.stay
    able = [
        (rider.rides[key], *_single(tables, way, rider.shape.stay))
        for rider in riders
        if way in dict(rider.shape.leaders)[key]
    ]
    if not able:
        model.add(leader.valid == leader.start + way.cycles).only_enforce_if(move)
        return
    setup = way.cycles - way.latency - way.moving
    latency = model.new_int_var(
        way.latency, max(way.latency, *(one[1] for one in able)), f"{key} latency"
    )
    moving = model.new_int_var(
        way.moving, max(way.moving, *(one[2] for one in able)), f"{key} moving"
    )
    model.add(leader.valid == leader.start + setup + latency + moving).only_enforce_if(move)
    if variables.structure.scope.relaxed:
        variables.least_rates[key, way] = min(way.rate, *(one[4] for one in able))
    links: dict[LinkIdx, list[Literal]] = defaultdict(list)
    for rides, own_latency, own_moving, own_links, _ in able:
        model.add(latency >= own_latency).only_enforce_if(rides)
        model.add(moving >= own_moving).only_enforce_if(rides)
        for link in own_links:
            if link not in way.links:
                links[link].append(rides)
    variables.extra_links[key, way] = {
        link: _holds(model, variables, move, rides, f"{key} also {link}")
        for link, rides in links.items()
    }


def _holds(
    model: cp_model.CpModel, variables: Variables, move: Literal, rides: list[Literal], name: str
) -> Literal:
    """Return a literal that is true when the way is taken and one of the riders rides."""
    held = variables.literal(name)
    model.add_implication(held, move)
    model.add_bool_or([*rides, ~held])
    for ride in rides:
        model.add_bool_or([~move, ~ride, held])
    return held


def _single(
    tables: ProblemTables, way: TransferOption, stay: CandidateResidency
) -> tuple[Cycles, Cycles, tuple[LinkIdx, ...], Fraction]:
    """Return latency, cycles of moving, links and rate of the way to one rider alone."""
    route = tables.routes.between(way.source, stay.memory)
    if route is None:
        return 0, 0, (), way.rate
    engine = tables.machine.engines[way.engine]
    cycles = transfer_cycles(engine, route, tables.problem.slices[stay.slice].bytes)
    moving = cycles - engine.setup - route.latency
    return route.latency, moving, route.links, transfer_rate(engine, route)


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
