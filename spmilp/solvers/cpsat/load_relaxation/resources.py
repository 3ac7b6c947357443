"""Links and engines that loads hold."""

from collections import defaultdict
from fractions import Fraction

from spmilp.machine.routes import transfer_rate
from spmilp.solvers.cpsat.load_relaxation.loads import LoadFrom, LoadKey, Loads
from spmilp.solvers.cpsat.resources import Held, add_links
from spmilp.solvers.cpsat.strengthen import Share, head_and_tail, shares_fit
from spmilp.solvers.cpsat.variables import Interval
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, EngineIdx, LinkIdx, MemoryIdx, SliceIdx


class Resources:
    """Constraints on what loads hold for certain, whatever transfer each is."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._model = loads.variables.model
        self._tables = loads.tables
        self._machine = loads.tables.machine
        self._destinations = self._destinations_of_links()

    def add(self) -> None:
        """Never more at a time than channels and rates allow, nor more in all than time does."""
        on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
        on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
        shares: dict[tuple[str, int], list[Share]] = defaultdict(list)
        for key, load, one in self._loads.transfers():
            head, tail = self._head_and_tail(key.slice, load)
            engines = frozenset(option.engine for option in one.options)
            if len(engines) == 1 and one.alone:
                engine = next(iter(engines))
                on_engine[engine].append(one.interval)
                shares["engine", engine].append(Share(head, tail, one.cycles, one.taken))
            for link in self._common_links(key.memory, one):
                rate = min(self._least_rate(option) for option in one.options)
                on_link[link].append(Held(key, frozenset(one.options), None, one.interval, rate))
                part = rate / self._machine.links[link].rate
                shares["link", link].append(Share(head, tail, part * one.cycles, one.taken))
        for engine, intervals in sorted(on_engine.items()):
            channels = self._machine.engines[engine].channels
            self._model.add_cumulative(intervals, [1] * len(intervals), channels)
        add_links(self._loads.variables, on_link)
        for (what, index), parts in sorted(shares.items()):
            capacity = self._machine.engines[index].channels if what == "engine" else 1
            shares_fit(self._loads.variables, parts, capacity)

    def _head_and_tail(self, slice_: SliceIdx, key: LoadKey | None) -> tuple[Cycles, Cycles]:
        """Return cycles before and after a load: it has ended when its reader starts."""
        head, tail = head_and_tail(self._tables, slice_)
        if key is not None and key.reader is not None:
            tail = max(tail, self._tables.paths.tail[key.reader])
        return head, tail

    def _common_links(self, memory: MemoryIdx, one: LoadFrom) -> list[LinkIdx]:
        """Return the links that every option holds; only its own where others may be part of it."""
        options = one.options
        common = set(options[0].links).intersection(*(option.links for option in options))
        if not one.alone:
            common = {link for link in common if self._destinations[link] == {memory}}
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

    def _least_rate(self, option: TransferOption) -> Fraction:
        """Return the rate of a transfer, or the least of a multicast that it may belong to."""
        engine = self._machine.engines[option.engine]
        if not engine.multicast:
            return option.rate
        routes = (
            self._tables.routes.between(option.source, memory.index)
            for memory in self._machine.memories
            if engine.serves(option.source, memory.index)
        )
        return min(transfer_rate(engine, route) for route in routes if route is not None)
