"""Processors of a chip with two opposed tori that issue transfers, run by spmilp's simulator."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from typing import NamedTuple

from spmilp.commands.commands import Signal, Wait
from spmilp.machine.machine import Link
from spmilp.machine.read import load_machine
from spmilp.machine.routes import Routes
from spmilp.simulator.events import Events, Send, Step, Work

Tile = tuple[int, int]  # column and row


class Packet(NamedTuple):
    """Bytes over network 0 or 1, sent ``setup`` cycles after a processor has issued them."""

    network: int
    source: Tile
    target: Tile
    bytes: int
    setup: float


Barrier = None
Program = Sequence[Packet | float | None]
"""What a processor does: issue a packet, work for some cycles, or wait until all has arrived."""


class Chip:
    """A machine file: the routes, rates, latencies and set-up that transfers take."""

    def __init__(self, name: str) -> None:
        self.machine = load_machine(name).machine
        self.engine = self.machine.engines[0]
        self._memories = {core.position: core.memory for core in self.machine.cores}
        self._way, self._routes = cache(self._way_between), cache(self._routes_over)

    def run(self, programs: Iterable[Program]) -> float:
        """Return the cycle at which the last barrier ends."""
        numbers, lists, last = count(), list[list[Step]](), list[int]()
        rate = float(self.engine.rate)
        for program in programs:
            steps, arrived, issued = list[Step](), next(numbers), 0
            lists.append(steps)
            for one in program:
                number = next(numbers)
                if isinstance(one, Packet):
                    links, latency = self._way(*one[:3])
                    send = Send(number, one.setup, one.bytes, rate, links, latency)
                    steps.append(Signal(number))
                    lists.append([Wait(number, 1), send, Signal(arrived)])
                    issued += 1
                elif one is Barrier:
                    steps += [Wait(arrived, issued), Work(number, 0.0)]
                    last.append(number)
                else:
                    steps.append(Work(number, one))
        events = Events(lists, [float(link.rate) for link in self.machine.links], takes=False)
        events.run()
        return max(events.activities[number].end for number in last)

    def _way_between(self, network: int, source: Tile, target: Tile) -> tuple[tuple[int, ...], int]:
        """Return links and latency; a tile without a core is one of DRAM."""
        port = next((tile for tile in (source, target) if tile not in self._memories), None)
        routes, kept = self._routes(network, port)
        dram = self.machine.drams[0].index
        here, there = (self._memories.get(tile, dram) for tile in (source, target))
        if here == there:  # what a tile sends to itself goes to its router and back
            ends = {self.machine.memories[here].name, f"n{network}_{source[0]}_{source[1]}"}
            links = [link for link in kept if {link.source, link.target} == ends]
            return tuple(link.index for link in links), sum(link.latency for link in links)
        route = routes.between(here, there)
        if route is None:
            raise ValueError(f"{self.machine.name}: neither a core nor DRAM at {port}")
        return tuple(kept[link].index for link in route.links), route.latency

    def _routes_over(self, network: int, port: Tile | None) -> tuple[Routes, list[Link]]:
        """Return the routes over one network and one port of DRAM, and the links that they know."""
        router = f"n{network}_{port[0]}_{port[1]}" if port else ""

        def is_kept(link: Link) -> bool:
            ends = (link.source, link.target)
            routers = [end for end in ends if end.startswith("n")]
            if any("_port" in end for end in ends) and routers:
                return routers == [router]
            return not any(one.startswith(f"n{1 - network}_") for one in routers)

        kept = [link for link in self.machine.links if is_kept(link)]
        links = tuple(replace(link, index=index) for index, link in enumerate(kept))
        return Routes(replace(self.machine, links=links)), kept
