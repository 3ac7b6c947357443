"""Small machines for the tests, written as their users write them."""

from fractions import Fraction
from typing import Any

import networkx as nx
import yaml

from spmilp.machine.machine import Core, CoreKind, Link, Machine, Memory, MemoryKind, Routing
from spmilp.machine.read import read_machine

SMALL = """
name: small
topology: {type: mesh, columns: 4, rows: 3, rate_bytes_per_cycle: 8, latency_cycles: 2}
core_kinds:
  core: {arrays: [{dtype: int8, K: 4}], lanes: {int8: 4}}
scratchpads:
  - cores: {core: 1}
    size_kib: 64
    dma:
      - {channels: 2, setup_cycles: 10, rate_bytes_per_cycle: 4}
dram:
  - sites: [r_0_0]
    rate_bytes_per_cycle: 6
    latency_cycles: 30
"""


def content() -> dict:
    """Return the fields of the small machine, to be changed by a test."""
    return yaml.safe_load(SMALL)


def described(fields: dict) -> Machine:
    """Return the machine of some fields."""
    return read_machine(yaml.safe_dump(fields, sort_keys=False).encode(), "test.yaml").machine


def small(**topology: object) -> Machine:
    """Return the small machine on another topology."""
    fields = content()
    if topology:
        fields["topology"] = {"rate_bytes_per_cycle": 8, "latency_cycles": 2, **topology}
    return described(fields)


def linked(
    memories: str,
    links: list[tuple[str, str, int, int]],
    *,
    routing: Routing = Routing.SHORTEST,
    positions: tuple[tuple[str, tuple[int, int]], ...] = (),
) -> Machine:
    """Return a machine of named memories, ``(source, target, rate, latency)`` links, no engines."""
    names = memories.split()
    return Machine(
        name="linked",
        memories=tuple(
            Memory(index=i, name=name, kind=MemoryKind.SPM, size=1024)
            for i, name in enumerate(names)
        ),
        kinds=(CoreKind(index=0, name="core"),),
        cores=(Core(index=0, name="core", kind=0, memory=0),),
        links=tuple(
            Link(index=i, source=source, target=target, rate=Fraction(rate), latency=latency)
            for i, (source, target, rate, latency) in enumerate(links)
        ),
        routing=routing,
        positions=positions,
    )


def index_of(machine: Machine, memory: str) -> int:
    """Return the index of a memory by name."""
    return next(m.index for m in machine.memories if m.name == memory)


def nodes_between(machine: Machine, links: tuple[int, ...]) -> list[str]:
    """Return the nodes along a path, its ends included."""
    path = [machine.links[link] for link in links]
    return [path[0].source, *(link.target for link in path)]


def as_graph(machine: Machine) -> nx.DiGraph:
    """Return the graph of links; of links side by side it has the one that routes use."""
    graph = nx.DiGraph()
    graph.add_nodes_from(memory.name for memory in machine.memories)
    for link in sorted(machine.links, key=lambda link: (-link.latency, -link.index)):
        graph.add_edge(link.source, link.target, link=link.index, latency=link.latency)
    return graph


def with_field(fields: dict, path: str, value: object, gone: object = None) -> dict:
    """Return fields in which one has another value; it is left out if the value is ``gone``."""
    holder: Any = fields
    *parts, last = (int(part) if part.isdecimal() else part for part in path.split("."))
    for part in parts:
        holder = holder[part]
    holder[last] = value
    if value is gone and gone is not None:
        del holder[last]
    return fields
