"""Expansion of single parts of a machine file: topologies, kinds of core, links."""

from math import prod

from spmilp.machine import topology
from spmilp.machine.description import (
    LOOPS,
    BusFields,
    CrossbarFields,
    GridFields,
    KindFields,
    LinkFields,
    MachineDescription,
    OpposedToriFields,
    RingFields,
    TreeFields,
)
from spmilp.machine.machine import CoreKind, MacArray, Routing
from spmilp.machine.topology import Topology, Wire
from spmilp.units import KindIdx

MOST_SITES = 2**16
"""Of one topology; far beyond any chip, it stops a slip of the finger."""


def topology_of(description: MachineDescription) -> Topology:
    """Return the routers and sites that a machine file asks for.

    Raises
    ------
    ValueError
        If there are far more sites than on any chip.
    """
    given = description.topology
    if isinstance(given, OpposedToriFields):
        _is_a_chip(given.columns * given.rows)
        return topology.opposed_tori(given.columns, given.rows, wire_of(given))
    if isinstance(given, GridFields):
        _is_a_chip(given.columns * given.rows)
        shape = topology.torus if given.type == "torus" else topology.mesh
        return shape(given.columns, given.rows, wire_of(given), Routing(given.routing))
    if isinstance(given, RingFields):
        return topology.ring(given.routers, wire_of(given))
    if isinstance(given, BusFields):
        return topology.bus(wire_of(given))
    if isinstance(given, CrossbarFields):
        return topology.crossbar(wire_of(given))
    if isinstance(given, TreeFields):
        _is_a_chip(prod(level.children for level in given.levels))
        return topology.tree(
            [level.children for level in given.levels], [wire_of(level) for level in given.levels]
        )
    return topology.routers(given.routers)


def _is_a_chip(sites: int) -> None:
    if sites > MOST_SITES:
        raise ValueError(f"topology: {sites} sites, expected at most {MOST_SITES}")


def kind_of(index: KindIdx, name: str, given: KindFields) -> CoreKind:
    """Return a kind of core."""
    arrays = []
    for array in given.arrays:
        sizes = array.model_dump(include=set(LOOPS))
        unroll = tuple((loop, sizes[loop]) for loop in LOOPS if sizes[loop] > 1)
        arrays.append(MacArray(dtype=array.dtype, unroll=unroll))
    return CoreKind(
        index=index,
        name=name,
        arrays=tuple(arrays),
        lanes=tuple(given.lanes.items()),
        launch=given.launch_cycles,
        operators=None if given.operators is None else frozenset(given.operators),
        mac_energy=tuple(given.mac_energy_fj.items()),
    )


def wire_of(given: LinkFields) -> Wire:
    """Return the properties of a link."""
    return Wire(given.rate_bytes_per_cycle, given.latency_cycles, given.energy_fj_per_byte)
