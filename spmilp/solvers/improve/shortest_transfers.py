"""The shortest transfers of a slice, to one memory or to several."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from spmilp.machine.routes import multicast_route, routes_of, transfer_rate
from spmilp.problem.problem import Problem
from spmilp.solvers.justify.profiles import cycles_by
from spmilp.solvers.justify.transfer_options import AT_PLACE, PART, WHOLE, EngineUse, OptionTables
from spmilp.units import Cycles, MemoryIdx, SliceIdx


class TransferOption(NamedTuple):
    """A transfer's cycles, and its engine and links with what it holds of each, as in schedules."""

    cycles: Cycles
    latency: Cycles
    resources: tuple[int, ...]
    amounts: tuple[int, ...]
    late: tuple[Cycles, ...]
    early: tuple[Cycles, ...]


class TransferOptions:
    """The shortest transfers from any memory to others, DRAMs too; found when first asked for."""

    def __init__(self, problem: Problem, tables: OptionTables) -> None:
        self._machine = problem.machine
        self._drams = {dram.index for dram in problem.machine.drams}
        self._tables = tables
        self._routes = routes_of(problem.machine)
        self.shortest = cache(self._shortest)

    def _shortest(
        self, what: SliceIdx, source: MemoryIdx, targets: tuple[MemoryIdx, ...], is_part: bool
    ) -> TransferOption | None:
        """Return the option of the fewest cycles for a slice; ``None`` if no engine can send it.

        Of a multicast there are several ``targets``, none of them a DRAM. It ``is_part`` if it is
        copied out of the whole buffer.
        """
        options = self._options(what, source, targets, is_part)
        return min(options, key=lambda one: one.cycles, default=None)

    def _options(
        self, what: SliceIdx, source: MemoryIdx, targets: tuple[MemoryIdx, ...], is_part: bool
    ) -> Iterator[TransferOption]:
        route = multicast_route(self._routes, source, targets)
        is_multicast = len(targets) > 1
        if route is None or source in targets or (is_multicast and self._drams & {*targets}):
            return
        machine, tables = self._machine, self._tables
        form = PART if is_part else WHOLE
        if self._drams & {source, targets[0]}:
            form = AT_PLACE
        first_link = tables.first_engine + len(machine.engines)
        links = [first_link + link for link in route.links]
        for index in self._routes.engines_for(source, targets[0]):
            engine = machine.engines[index]
            if is_multicast and not engine.multicast:
                continue
            if not all(engine.serves(source, target) for target in targets):
                continue
            rate = int(transfer_rate(engine, route) * tables.scale)
            taken = EngineUse(index, engine.setup, route.latency, rate)
            cycles = cycles_by(taken, tables, what, form)
            if cycles > 0:
                yield TransferOption(
                    cycles,
                    route.latency,
                    resources=(tables.first_engine + index, *links),
                    amounts=(1, *(rate for _ in links)),
                    late=(0, *(engine.setup for _ in links)),
                    early=(route.latency * engine.pipelined, *(route.latency for _ in links)),
                )
