"""The machine's part of the schedule state.

Rates are scaled to integers by one common factor, so that durations and loads stay exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

import numpy as np

from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.routes import Routes
from spmilp.solvers.kernels.records import (
    NO_LIMIT,
    NONE,
    Ints,
    Table,
    flatten,
    table,
)
from spmilp.units import MemoryIdx

MOST_MEMORIES_WITH_ALL_PAIRS = 96
"""On larger machines only the pairs of memories that a run may use are looked up."""


@dataclass(frozen=True, slots=True)
class MachineTables:
    """The machine in a ``ScheduleState``, before any decision."""

    cores: Table
    memories: Table
    pair_at: Ints
    pairs: Table
    ways: Table
    links: Ints
    resources: Table
    scale: int


def machine_tables(
    machine: Machine, routes: Routes, pairs: Iterable[tuple[MemoryIdx, MemoryIdx]]
) -> MachineTables:
    """Flatten a machine with the ways of the memory ``pairs`` that transfers may use."""
    rates = [link.rate for link in machine.links] + [engine.rate for engine in machine.engines]
    scale = lcm(*(rate.denominator for rate in rates)) if rates else 1
    pair_at, row_of_pairs, ways, links = _pair_tables(machine, routes, pairs, scale)
    return MachineTables(
        _core_table(machine),
        _memory_table(machine, routes),
        pair_at,
        row_of_pairs,
        ways,
        links,
        _resource_table(machine, scale),
        scale,
    )


def _pair_tables(
    machine: Machine,
    routes: Routes,
    pairs: Iterable[tuple[MemoryIdx, MemoryIdx]],
    scale: int,
) -> tuple[Ints, Table, Table, Ints]:
    pair_at = np.full((len(machine.memories), len(machine.memories)), NONE, np.int64)
    rate_of_engines = [int(engine.rate * scale) for engine in machine.engines]
    rate_of_links = [int(link.rate * scale) for link in machine.links]
    ways: list[list[tuple[int, int, int]]] = []
    links: list[list[int]] = []
    for source, destination in sorted(set(pairs)):
        route = routes.between(source, destination)
        served = routes.engines_for(source, destination)
        if route is None or not served:
            continue
        pair_at[source, destination] = len(ways)
        links.append([len(machine.engines) + link for link in route.links])
        slowest = min((rate_of_links[link] for link in route.links), default=NO_LIMIT)
        ways.append(
            [
                (
                    index,
                    machine.engines[index].setup + route.latency,
                    min(rate_of_engines[index], slowest),
                )
                for index in served
            ]
        )
    rows = table(len(ways), "ways_from", "ways_to", "links_from", "links_to")
    begins, _ = flatten([0] * len(some) for some in ways)
    rows["ways_from"], rows["ways_to"] = begins[:-1], begins[1:]
    begins, every_link = flatten(links)
    rows["links_from"], rows["links_to"] = begins[:-1], begins[1:]
    every_way = table(sum(map(len, ways)), "engine", "fixed", "rate")
    every_way[:] = [way for some in ways for way in some]
    return pair_at, rows, every_way, every_link


def _core_table(machine: Machine) -> Table:
    cores = table(len(machine.cores), "kind", "memory", "free")
    cores["kind"] = [core.kind for core in machine.cores]
    cores["memory"] = [core.memory for core in machine.cores]
    return cores


def _memory_table(machine: Machine, routes: Routes) -> Table:
    memories = table(
        len(machine.memories),
        *("alignment", "is_dram", "parent", "settled", "spared", "counted"),
    )
    for memory in machine.memories:
        memories[memory.index] = (
            alignment_of(machine, memory.index),
            memory.kind is MemoryKind.DRAM,
            next_towards_dram(machine, routes, memory.index),
            0,
            0,
            0,
        )
    return memories


def next_towards_dram(machine: Machine, routes: Routes, memory: MemoryIdx) -> MemoryIdx:
    """Return the next memory on the shortest path to a DRAM; -1 in a DRAM or without path."""
    if machine.memories[memory].kind is MemoryKind.DRAM:
        return NONE
    paths = (routes.staging_path(memory, dram.index) for dram in machine.drams)
    found = [path for path in paths if path is not None]
    return min(found, key=len)[1] if found else NONE


def alignment_of(machine: Machine, memory: MemoryIdx) -> int:
    """Return what offsets are multiples of: the memory's alignment and every engine's congruence.

    So both ends of any transfer of a whole residency are congruent.
    """
    congruences = (engine.congruence for engine in machine.engines)
    return lcm(machine.memories[memory].alignment, *congruences)


def _resource_table(machine: Machine, scale: int) -> Table:
    resources = table(
        len(machine.engines) + len(machine.links),
        *("capacity", "longest", "dimensions", "congruence"),
    )
    for engine in machine.engines:
        resources[engine.index] = (
            engine.channels,
            NO_LIMIT if engine.longest is None else engine.longest,
            NO_LIMIT if engine.dimensions is None else engine.dimensions,
            engine.congruence,
        )
    for link in machine.links:
        resources[len(machine.engines) + link.index] = (int(link.rate * scale), 0, 0, 1)
    return resources
