"""Least use of the links into a memory, and out of it, by what has to come or to leave."""

from fractions import Fraction
from typing import NamedTuple

from spmilp.bounds.distances import Distances
from spmilp.machine.machine import Link
from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes, MemoryIdx


class Passage(NamedTuple):
    """The links into some memories, or out of them, at their best.

    Parameters
    ----------
    rate
        Bytes per cycle that the links of none of the memories exceed; 0 if nothing is known.
    overhead
        Bytes that each transfer holds on them beside its own, at least.
    """

    rate: Fraction
    overhead: Bytes


class MemoryLinks:
    """The passages into the memories in which tasks may work, and out of them.

    All routes into a memory end with one of the links that lead there, so the transfers into it
    hold their rates on these links together. One of ``n`` bytes, with ``fixed`` cycles of set-up
    and latency, holds

        rate * (fixed + ceil(n / rate))  >=  rate * fixed + n

    for all its cycles together. A multicast has the greatest latency of its destinations and no
    greater rate than the least of theirs, so with ``d`` the slowest destination, it holds at least
    ``rate(d) * fixed(d) + n``; where engines can multicast, the least overhead is that of any
    transfer. Links out of a memory likewise.
    """

    def __init__(self, problem: Problem, distances: Distances) -> None:
        self._machine = problem.machine
        self._distances = distances
        self._casts = any(engine.multicast for engine in problem.machine.engines)
        self._into = self._rates({link.target: [] for link in problem.machine.links}, into=True)
        self._out_of = self._rates({link.source: [] for link in problem.machine.links}, into=False)
        self._overheads = self._least_overheads()
        self._known: dict[tuple[frozenset[MemoryIdx], bool], Passage] = {}

    def into(self, task: Task) -> Passage:
        """Return the passage into the memory in which a task runs."""
        return self._passage(self._distances.writable(task), into=True)

    def out_of(self, task: Task) -> Passage:
        """Return the passage out of the memory in which a task runs."""
        return self._passage(self._distances.writable(task), into=False)

    def _passage(self, memories: frozenset[MemoryIdx], *, into: bool) -> Passage:
        key = memories, into
        if key not in self._known:
            names = [self._machine.memories[memory].name for memory in memories]
            rates = self._into if into else self._out_of
            overheads = [self._overheads.get((memory, into), 0) for memory in memories]
            self._known[key] = Passage(
                max((rates.get(name, Fraction(0)) for name in names), default=Fraction(0)),
                min(overheads, default=0),
            )
        return self._known[key]

    def _rates(self, links: dict[str, list[Link]], *, into: bool) -> dict[str, Fraction]:
        """Return the sum of the rates of the links at each node; of parallel ones the fastest."""
        for link in self._machine.links:
            links[link.target if into else link.source].append(link)
        found = {}
        for node, some in links.items():
            fastest: dict[str, Fraction] = {}
            for link in some:
                other = link.source if into else link.target
                fastest[other] = max(link.rate, fastest.get(other, link.rate))
            found[node] = sum(fastest.values(), Fraction(0))
        return found

    def _least_overheads(self) -> dict[tuple[MemoryIdx, bool], Bytes]:
        """Return the whole bytes of the least overhead of a transfer into and out of memories."""
        if not self._distances.is_small:
            return {}
        found: dict[tuple[MemoryIdx, bool], Bytes] = {}
        for (source, target), options in self._distances.options.items():
            least = min(int(option.rate * option.fixed) for option in options)
            for key in ((target, True), (source, False)):
                found[key] = min(least, found.get(key, least))
        if self._casts and found:
            found = dict.fromkeys(found, min(found.values()))
        return found
