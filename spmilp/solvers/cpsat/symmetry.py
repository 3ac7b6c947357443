"""Memories that can be exchanged, with their cores, engines and links."""

from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter

from spmilp.machine.machine import Engine, Link, Memory
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.variables import Literal, Variables
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx

MOST_MEMORIES = 40
"""Machines with more are not searched: the pairs of pairs are too many."""


def use_memories_in_order(variables: Variables, reading: Reading | None) -> None:
    """Of memories that can be exchanged, a task uses the next one only after the one before.

    *After* is by index of task, not by time: if no task with a lower index runs in the one before,
    exchange the two. This is value precedence (Law and Lee, "Global constraints for integer and set
    value precedence", CP 2004). The order of the memories is that in which the hint uses them.
    """
    tables = variables.tables
    for exchangeable in _classes(tables):
        order = _order_in_hint(tables, exchangeable, reading)
        for before, memory in pairwise(order):
            earlier: list[Literal] = []
            for task in variables.tasks:
                here = task.memories.get(memory)
                if here is not None:
                    variables.model.add_bool_or([*earlier, ~here])
                if before in task.memories:
                    earlier.append(task.memories[before])


def _classes(tables: ProblemTables) -> list[list[MemoryIdx]]:
    """Return the memories that have tasks and can be exchanged two by two; singles left out."""
    if len(tables.machine.memories) > MOST_MEMORIES:
        return []
    found: list[list[MemoryIdx]] = []
    fixed = {m for b in tables.problem.buffers for m in (b.starts_in, b.ends_in)}
    fixed.update(memory for pin in tables.pins.values() for memory in pin.memories)
    for memory in dict.fromkeys(pool.memory for pool in tables.pools):
        if memory in fixed:
            continue
        for some in found:
            if _Swap(tables, some[0], memory).is_automorphism():
                some.append(memory)
                break
        else:
            found.append([memory])
    return [some for some in found if len(some) > 1]


def _order_in_hint(
    tables: ProblemTables, memories: list[MemoryIdx], reading: Reading | None
) -> list[MemoryIdx]:
    first = dict.fromkeys(memories, len(tables.problem.tasks))
    if reading is not None:
        for placement in reading.plan.placements:
            memory = tables.machine.cores[placement.core].memory
            if memory in first:
                first[memory] = min(first[memory], placement.task)
    return sorted(memories, key=lambda memory: (first[memory], memory))


_MEMORY = attrgetter("kind", "size", "alignment", "reserved", "energy_per_byte")
_LINK = attrgetter("rate", "latency", "energy_per_byte")
_ENGINE = attrgetter(
    *("channels", "setup", "rate", "longest", "dimensions", "congruence", "multicast", "controller")
)
"""What tells two of them apart, their ends aside."""


class _Swap:
    """The exchange of two memories, and what it does to engines and links.

    Exchanging the ends of every route must map engines to equal engines and links to equal links,
    one to one. Swaps with one memory generate all permutations of its class.
    """

    def __init__(self, tables: ProblemTables, one: MemoryIdx, other: MemoryIdx) -> None:
        self._tables = tables
        self._pair = one, other
        self._engines: dict[int, int] = {}
        self._links: dict[int, int] = {}

    def is_automorphism(self) -> bool:
        one, other = (self._tables.machine.memories[index] for index in self._pair)
        alike = _MEMORY(one) == _MEMORY(other) and self._cores(one) == self._cores(other)
        return alike and all(self._maps(*ends) for ends in self._ends()) and self._is_one_to_one()

    def _cores(self, memory: Memory) -> dict[int, int]:
        pools = self._tables.pools
        return {pool.kind: len(pool.cores) for pool in pools if pool.memory == memory.index}

    def _ends(self) -> Iterator[tuple[MemoryIdx, MemoryIdx]]:
        memories = range(len(self._tables.machine.memories))
        return ((a, b) for a in memories for b in memories)

    def _image(self, memory: MemoryIdx) -> MemoryIdx:
        one, other = self._pair
        return {one: other, other: one}.get(memory, memory)

    def _maps(self, source: MemoryIdx, destination: MemoryIdx) -> bool:
        routes, machine = self._tables.routes, self._tables.machine
        ends = self._image(source), self._image(destination)
        here, there = routes.between(source, destination), routes.between(*ends)
        if here is None or there is None:
            return here is there
        links = [[machine.links[x] for x in route.links] for route in (here, there)]
        served = routes.engines_for(source, destination), routes.engines_for(*ends)
        engines = [[machine.engines[x] for x in some] for some in served]
        if [_LINK(x) for x in links[0]] != [_LINK(x) for x in links[1]]:
            return False
        return self._pairs_up(links, self._links) and self._engines_pair_up(engines)

    def _pairs_up(self, sides: list[list[Link]], known: dict[int, int]) -> bool:
        return all(
            known.setdefault(a.index, b.index) == b.index
            for a, b in zip(sides[0], sides[1], strict=True)
        )

    def _engines_pair_up(self, sides: list[list[Engine]]) -> bool:
        """Pair engines by their owners; engines without one are their own images."""
        images = {(self._owner(e), _ENGINE(e)): e for e in sides[1]}
        if len(sides[0]) != len(sides[1]) or len(images) < len(sides[1]):
            return False
        for engine in sides[0]:
            owner = None if engine.owner is None else self._image(engine.owner)
            own = engine.index if engine.owner is None else None
            image = images.get(((owner, own), _ENGINE(engine)))
            if image is None:
                return False
            if self._engines.setdefault(engine.index, image.index) != image.index:
                return False
        return True

    def _owner(self, engine: Engine) -> tuple[MemoryIdx | None, int | None]:
        return engine.owner, engine.index if engine.owner is None else None

    def _is_one_to_one(self) -> bool:
        return all(len(set(m.values())) == len(m) for m in (self._engines, self._links))
