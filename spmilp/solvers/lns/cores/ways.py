"""How a slice gets from one memory to another: cycles, and what a transfer holds meanwhile."""

from typing import NamedTuple

from spmilp.machine.routes import Routes
from spmilp.problem.problem import Problem
from spmilp.solvers.lns.copies import Copies
from spmilp.units import Cycles, MemoryIdx, SliceIdx


class Way(NamedTuple):
    """A transfer's cycles, and its engine and links with what it holds of each, as in drafts."""

    cycles: Cycles
    resources: tuple[int, ...]
    amounts: tuple[int, ...]


class _Service(NamedTuple):
    engine: int
    fixed: Cycles
    rate: int


class Ways:
    """The ways between any two memories, found when first asked for."""

    def __init__(self, problem: Problem, copies: Copies) -> None:
        self._machine = problem.machine
        self._drams = {dram.index for dram in problem.machine.drams}
        self._copies = copies
        self._routes = Routes(problem.machine)
        self._shortest: dict[tuple[SliceIdx, MemoryIdx, MemoryIdx, bool], Way | None] = {}
        self._found: dict[tuple[MemoryIdx, MemoryIdx], tuple[list[_Service], list[int]]] = {}

    def shortest(
        self, what: SliceIdx, source: MemoryIdx, target: MemoryIdx, *, is_part: bool
    ) -> Way | None:
        """Return the way of the fewest cycles for a slice; ``None`` if no engine can take it.

        Parameters
        ----------
        is_part
            Whether it is copied out of the whole buffer.
        """
        key = what, source, target, is_part
        if key not in self._shortest:
            self._shortest[key] = self._find(*key)
        return self._shortest[key]

    def _find(
        self, what: SliceIdx, source: MemoryIdx, target: MemoryIdx, is_part: bool
    ) -> Way | None:
        services, links = self._between(source, target)
        entry = self._copies.slices[what]
        dimensions, offset = 1, 0
        if source in self._drams or target in self._drams:
            dimensions, offset = int(entry.at_place), int(entry.offset_at_place)
        elif is_part:
            dimensions, offset = int(entry.from_parent), int(entry.offset_in_parent)
        size = int(entry.bytes)
        best: Way | None = None
        for service in services:
            limits = self._copies.limits[service.engine]
            if size > limits.longest or dimensions > limits.dimensions:
                continue
            if offset % limits.congruence != 0:
                continue
            cycles = service.fixed - (-size * self._copies.scale // service.rate)
            if best is None or cycles < best.cycles:
                first = self._copies.first_engine
                best = Way(
                    cycles,
                    (first + service.engine, *(first + link for link in links)),
                    (1, *(service.rate for _ in links)),
                )
        return best

    def _between(self, source: MemoryIdx, target: MemoryIdx) -> tuple[list[_Service], list[int]]:
        pair = source, target
        if pair not in self._found:
            self._found[pair] = self._look_up(source, target)
        return self._found[pair]

    def _look_up(self, source: MemoryIdx, target: MemoryIdx) -> tuple[list[_Service], list[int]]:
        machine, scale = self._machine, self._copies.scale
        route = self._routes.between(source, target)
        if route is None or source == target:
            return [], []
        services = []
        for index in self._routes.engines_for(source, target):
            engine = machine.engines[index]
            rate = engine.rate if route.rate is None else min(engine.rate, route.rate)
            services.append(_Service(index, engine.setup + route.latency, int(rate * scale)))
        return services, [len(machine.engines) + link for link in route.links]
