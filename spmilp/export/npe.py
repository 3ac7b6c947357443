"""``npe.json``: a plan's transfers as a workload of tt-npe, Tenstorrent's model of its networks.

The fields are those that ``loadJSONWorkloadFormat`` of tt-npe reads; it skips the others. Tiles are
x and y of NoC 0, whichever NoC a transfer takes; data goes from ``src`` to ``dst`` in reads, too.
tt-npe adds no latency to a workload: ``phase_cycle_offset`` is when the first byte arrives, with
set-up and latency, and the golden ``cycles``, with which tt-npe compares its own, when the last
transfer has ended. A multicast is a rectangle there, any other one several that start together.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from math import inf
from typing import Any, TypeAlias

import msgspec

from spmilp.cached import cached
from spmilp.export.errors import ExportError
from spmilp.export.perfetto import of_some_inferences
from spmilp.export.subject import Subject
from spmilp.machine.machine import Machine, MemoryKind, Routing
from spmilp.machine.routes import routes_of
from spmilp.plan.plan import Transfer
from spmilp.units import MemoryIdx

TITLE = ("tt-npe-workload", "1.0")

PACKET = 8192
"""Bytes of the largest packet that both Wormhole and Blackhole have."""

ROUTER = re.compile(r"n([01])_(\d+)_(\d+)")
"""Names of :class:`~spmilp.machine.description.OpposedTori`: network, x and y."""

Tile: TypeAlias = tuple[int, int]


def npe(subject: Subject) -> dict[str, bytes]:
    """Return the file; of a stream, of its prologue and inferences up to some that all overlap.

    Raises an ``ExportError`` if the machine has other networks than two tori of one-way links.
    """
    origin, subject = subject.fields(TITLE), of_some_inferences(subject)
    machine, moves = subject.problem.machine, subject.plan.transfers
    if machine.routing is not Routing.ROUND_TRIP:
        raise ExportError(
            f"npe: routes of {machine.name} are of the kind {machine.routing}, expected those of "
            "opposed_tori; tt-npe knows Wormhole and Blackhole alone"
        )
    file = {
        **origin,
        "golden_result": {"cycles": max((move.end for move in moves), default=0)},
        "phases": [{"transfers": [row for move in moves for row in _rows(subject, move)]}],
    }
    return {"npe.json": msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"}


def _rows(subject: Subject, move: Transfer) -> Iterator[dict[str, Any]]:
    """Yield a transfer for each network, source tile and rectangle; one unless it is a multicast.

    Packets are equal; together they may have a few bytes more.
    """
    problem, residencies = subject.problem, subject.plan.residencies
    engine, size = problem.machine.engines[move.engine], problem.slices[move.slice].bytes
    source = residencies[move.source].memory
    ends = [residencies[end].memory for end in move.destinations]
    packets = -(-size // PACKET)
    common = {
        "packet_size": -(-size // packets),
        "num_packets": packets,
        "phase_cycle_offset": move.start + engine.setup + move.end - move.sent,
    }
    targets: dict[tuple[str, Tile], list[Tile]] = defaultdict(list)
    for end in ends:
        network, first, last = _way(problem.machine, source, end)
        targets[network, first].append(last)
    for (network, (x, y)), tiles in targets.items():
        row: dict[str, Any] = {**common, "noc_type": f"NOC_{network}", "src_x": x, "src_y": y}
        for (left, top), (right, bottom) in rectangles(tiles, _workers(problem.machine)):
            kind, to = "READ" if engine.owner in ends else "WRITE_", {"dst_x": left, "dst_y": top}
            if (left, top) != (right, bottom):
                kind, to = "WRITE_MULTICAST", {"mcast_start_x": left, "mcast_start_y": top}
                to |= {"mcast_end_x": right, "mcast_end_y": bottom}
            yield {**row, **to, "noc_event_type": kind}


def _way(machine: Machine, source: MemoryIdx, end: MemoryIdx) -> tuple[str, Tile, Tile]:
    """Return the network between two memories, and its first and last tile."""
    route = routes_of(machine).between(source, end)
    links = [machine.links[link] for link in route.links] if route else []
    nodes = (ROUTER.fullmatch(node) for link in links for node in (link.source, link.target))
    routers = [match for match in nodes if match]
    if not routers:
        names = " and ".join(machine.memories[one].name for one in (source, end))
        raise ExportError(f"npe: no router n0_x_y or n1_x_y is between {names}; tt-npe wants one")
    first, last = ((int(one[2]), int(one[3])) for one in (routers[0], routers[-1]))
    return routers[0][1], first, last


@cached
def _workers(machine: Machine) -> set[Tile]:
    """Return the tiles with scratchpads, which a multicast fills wherever it passes."""
    names = {one.name for one in machine.memories if one.kind is MemoryKind.SPM}
    routers = (ROUTER.fullmatch(link.source) for link in machine.links if link.target in names)
    return {(int(one[2]), int(one[3])) for one in routers if one}


def rectangles(targets: Collection[Tile], workers: Collection[Tile]) -> list[tuple[Tile, Tile]]:
    """Return first and last tiles of rectangles that have each target once, and no other worker."""
    found, left = list[tuple[Tile, Tile]](), set(targets)
    while left:
        y, x = min((y, x) for x, y in left)
        taken = set(workers) - left
        right = min((c for c, r in taken if r == y and c > x), default=inf)
        bottom = min((r for c, r in taken if r > y and x <= c < right), default=inf)
        inside = {(c, r) for c, r in left if x <= c < right and y <= r < bottom}
        found.append(((x, y), (max(c for c, _ in inside), max(r for _, r in inside))))
        left -= inside
    return found
