"""The machine's part of the schedule state.

Rates are scaled to integers by one common factor, so that durations and loads stay exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

import numpy as np

from spmilp.machine.controllers import MOST_DIMENSIONS, shape_mask, unit_of
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.made_once import made_once
from spmilp.solvers.kernels.records import (
    NO_LIMIT,
    NONE,
    Ints,
    Table,
    numbers,
    rows_of,
    set_ranges,
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
    options: Table
    links: Ints
    resources: Table
    scale: int


def machine_tables(machine: Machine, pairs: Iterable[tuple[MemoryIdx, MemoryIdx]]) -> MachineTables:
    """Flatten a machine with the transfer options between the memory ``pairs`` in use."""
    rates = [link.rate for link in machine.links] + [engine.rate for engine in machine.engines]
    scale = lcm(*(rate.denominator for rate in rates)) if rates else 1
    pair_at, row_of_pairs, options, links = _pair_tables(machine, pairs, scale)
    return MachineTables(
        _core_table(machine),
        _memory_table(machine),
        pair_at,
        row_of_pairs,
        options,
        links,
        _resource_table(machine, scale),
        scale,
    )


@made_once
def tables_with_all_pairs(machine: Machine) -> MachineTables:
    """Flatten a machine with the transfer options between all of its memories."""
    pairs = ((a.index, b.index) for a in machine.memories for b in machine.memories if a is not b)
    return machine_tables(machine, pairs)


def _pair_tables(
    machine: Machine, pairs: Iterable[tuple[MemoryIdx, MemoryIdx]], scale: int
) -> tuple[Ints, Table, Table, Ints]:
    routes = routes_of(machine)
    pair_at = np.full((len(machine.memories), len(machine.memories)), NONE, np.int64)
    rate_of_engines = [int(engine.rate * scale) for engine in machine.engines]
    rate_of_links = [int(link.rate * scale) for link in machine.links]
    options: list[tuple[int, int, int]] = []
    options_from = [0]
    links: list[list[int]] = []
    for source, destination in sorted(set(pairs)):
        route = routes.between(source, destination)
        engines = routes.engines_for(source, destination)
        if route is None or not engines:
            continue
        pair_at[source, destination] = len(links)
        links.append([len(machine.engines) + link for link in route.links])
        slowest = min((rate_of_links[link] for link in route.links), default=NO_LIMIT)
        for engine in engines:
            fixed = machine.engines[engine].setup + route.latency
            options.append((engine, fixed, min(rate_of_engines[engine], slowest)))
        options_from.append(len(options))
    rows = table(len(links), "options_from", "options_to", "links_from", "links_to")
    links_from, every_link = rows_of(links)
    set_ranges(rows, "options", numbers(options_from))
    set_ranges(rows, "links", links_from)
    every_option = table(len(options), "engine", "fixed", "rate")
    every_option[:] = options
    return pair_at, rows, every_option, every_link


def _core_table(machine: Machine) -> Table:
    cores = table(len(machine.cores), "kind", "memory", "free")
    cores["kind"] = [core.kind for core in machine.cores]
    cores["memory"] = [core.memory for core in machine.cores]
    return cores


def _memory_table(machine: Machine) -> Table:
    memories = table(
        len(machine.memories),
        *("alignment", "is_dram", "parent", "settled", "loads_saved", "counted_for"),
    )
    for memory in machine.memories:
        memories[memory.index] = (
            alignment_of(machine, memory.index),
            memory.kind is MemoryKind.DRAM,
            next_towards_dram(machine, memory.index),
            0,
            0,
            0,
        )
    return memories


def next_towards_dram(machine: Machine, memory: MemoryIdx) -> MemoryIdx:
    """Return the next memory on the shortest path to a DRAM; -1 in a DRAM or without path."""
    if machine.memories[memory].kind is MemoryKind.DRAM:
        return NONE
    paths = (routes_of(machine).staging_path(memory, dram.index) for dram in machine.drams)
    found = [path for path in paths if path is not None]
    return min(found, key=len)[1] if found else NONE


def alignment_of(machine: Machine, memory: MemoryIdx) -> int:
    """Return what offsets are multiples of: the memory's alignment and what every engine asks.

    So both ends of any transfer of a whole residency are congruent, and at a controller's unit.
    """
    units = (lcm(engine.congruence, unit_of(engine.controller)) for engine in machine.engines)
    return lcm(machine.memories[memory].alignment, *units)


def _resource_table(machine: Machine, scale: int) -> Table:
    resources = table(
        len(machine.engines) + len(machine.links),
        *("capacity", "longest", "dimensions", "shapes", "congruence", "multicast"),
    )
    for engine in machine.engines:
        resources[engine.index] = (
            engine.channels,
            NO_LIMIT if engine.longest is None else engine.longest,
            MOST_DIMENSIONS if engine.dimensions is None else engine.dimensions,
            shape_mask(engine.controller),
            lcm(engine.congruence, unit_of(engine.controller)),
            engine.multicast,
        )
    for link in machine.links:
        resources[len(machine.engines) + link.index] = (int(link.rate * scale), 0, 0, 0, 1, 0)
    return resources
