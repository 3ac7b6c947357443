"""Transfers with several destinations.

The transfer belongs to the stay in the lowest memory among its destinations, the *leader*; the
others ride on it. It lasts ``set-up + greatest latency + cycles of moving``, holds one channel, and
each link of the union of the routes once. Only routes of one rate are joined: where an engine has
others, the structure is marked as restricted.
"""

from collections import defaultdict
from fractions import Fraction

from spmilp.solvers.milp.constraints import own_cycles
from spmilp.solvers.milp.linear import Linear
from spmilp.solvers.milp.program import total
from spmilp.solvers.milp.stays import Ride, Stay
from spmilp.solvers.milp.variables import StayVars, Variables
from spmilp.units import LinkIdx


def add_multicasts(variables: Variables) -> None:
    """Tie riders to their leaders, in time and on the links."""
    together: dict[tuple[Stay, int], list[Linear]] = defaultdict(list)
    for key, stay in variables.stays.items():
        for ride, rides in stay.rides.items():
            _tie(variables, stay, ride, rides)
            together[ride.leader, key.memory].append(rides)
    for some in together.values():
        if len(some) > 1:
            variables.program.at_most(total(some), 1)
    _hold_the_links_of_all_routes(variables)


def _tie(variables: Variables, stay: StayVars, ride: Ride, rides: Linear) -> None:
    """A rider is there from the start of the transfer, and valid from its end."""
    program, leader = variables.program, variables.stays[ride.leader]
    chosen = [
        found
        for fill, found in leader.transfers()
        if fill.way == ride.way and fill.source in ride.sources
    ]
    program.at_most(rides, total(chosen))
    program.at_most(stay.start, leader.start, 1 - rides)
    program.at_least(stay.valid, leader.valid, 1 - rides)
    longer = max(0, ride.own.latency - ride.way.latency)
    program.at_least(leader.valid, leader.start + own_cycles(leader) + longer, 1 - rides)


def _hold_the_links_of_all_routes(variables: Variables) -> None:
    for stay in variables.stays.values():
        for ride, rides in stay.rides.items():
            held = variables.extra_links.setdefault(ride.leader, {})
            for link in ride.own.links:
                if link not in ride.way.links:
                    _hold(variables, held, ride, (link, ride.way.rate))
                    variables.program.at_least(held[link, ride.way.rate], rides)


def _hold(
    variables: Variables,
    held: dict[tuple[LinkIdx, Fraction], Linear],
    ride: Ride,
    key: tuple[LinkIdx, Fraction],
) -> None:
    if key not in held:
        name = f"slice{ride.leader.slice}_{ride.leader.memory}_{ride.leader.number}_also{key[0]}"
        held[key] = variables.program.binary(name)
