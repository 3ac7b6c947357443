"""Links and engines that arrivals hold."""

from collections import defaultdict
from fractions import Fraction

from ortools.sat.python import cp_model

from spmilp.bounds.paths import Paths
from spmilp.machine.routes import transfer_rate
from spmilp.solvers.cpsat.arrivals.arrivals import Arrivals
from spmilp.solvers.cpsat.arrivals.kinds import Key, Kind
from spmilp.solvers.cpsat.resources import Held, add_links
from spmilp.solvers.cpsat.strengthen import Share, fit, head_and_tail
from spmilp.solvers.cpsat.variables import Interval, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, EngineIdx, LinkIdx, MemoryIdx


class Carried:
    """Constraints of what arrivals hold for certain, whatever way each takes."""

    def __init__(
        self,
        cp: cp_model.CpModel,
        tables: ProblemTables,
        variables: Variables,
        arrivals: Arrivals,
        paths: Paths,
    ) -> None:
        self._cp = cp
        self._tables = tables
        self._machine = tables.machine
        self._variables = variables
        self._arrivals = arrivals
        self._paths = paths
        self._destinations = self._destinations_of_links()

    def add(self) -> None:
        """Never more at a time than channels and rates allow, nor more in all than time does."""
        on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
        on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
        shares: dict[tuple[str, int], list[Share]] = defaultdict(list)
        for stay, key, kind in self._arrivals.all_kinds():
            head, tail = self._head_and_tail(stay, key)
            engines = frozenset(way.engine for way in kind.ways)
            if len(engines) == 1 and kind.alone:
                engine = next(iter(engines))
                on_engine[engine].append(kind.interval)
                shares["engine", engine].append(Share(head, tail, kind.cycles, kind.taken))
            for link in self._common_links(stay, kind):
                rate = min(self._least_rate(way) for way in kind.ways)
                some = frozenset(kind.ways)
                on_link[link].append(Held(stay, some, None, kind.interval, rate, engines))
                part = rate / self._machine.links[link].rate
                shares["link", link].append(Share(head, tail, part * kind.cycles, kind.taken))
        for engine, intervals in sorted(on_engine.items()):
            channels = self._machine.engines[engine].channels
            self._cp.add_cumulative(intervals, [1] * len(intervals), channels)
        add_links(self._cp, self._tables, on_link)
        for (what, index), parts in sorted(shares.items()):
            capacity = self._machine.engines[index].channels if what == "engine" else 1
            fit(self._cp, self._variables, parts, capacity)

    def _head_and_tail(self, stay: CandidateResidency, key: Key | None) -> tuple[Cycles, Cycles]:
        """Return cycles before and after an arrival: it has ended when its reader starts."""
        head, tail = head_and_tail(self._tables, self._paths, stay.slice)
        if key is not None and key.reader is not None:
            tail = max(tail, self._paths.tail[key.reader])
        return head, tail

    def _common_links(self, stay: CandidateResidency, kind: Kind) -> list[LinkIdx]:
        """Return the links that every way holds; where others may be part of it, only its own."""
        common = set(kind.ways[0].links).intersection(*(way.links for way in kind.ways))
        if not kind.alone:
            common = {link for link in common if self._destinations[link] == {stay.memory}}
        return sorted(common)

    def _destinations_of_links(self) -> dict[LinkIdx, set[MemoryIdx]]:
        found: dict[LinkIdx, set[MemoryIdx]] = defaultdict(set)
        memories = range(len(self._machine.memories))
        for source in memories:
            for memory in memories:
                route = self._tables.routes.between(source, memory)
                for link in route.links if route is not None else ():
                    found[link].add(memory)
        return found

    def _least_rate(self, way: TransferOption) -> Fraction:
        """Return the rate of a way, or the least that a multicast it belongs to may have."""
        engine = self._machine.engines[way.engine]
        if not engine.multicast:
            return way.rate
        routes = (
            self._tables.routes.between(way.source, memory.index)
            for memory in self._machine.memories
            if engine.serves(way.source, memory.index)
        )
        return min(transfer_rate(engine, route) for route in routes if route is not None)
