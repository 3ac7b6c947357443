"""The quantities of a plan as expressions."""

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.solvers.milp.linear import Linear, Number
from spmilp.solvers.milp.memory import Room
from spmilp.solvers.milp.program import total
from spmilp.solvers.milp.variables import StayVars, Variables


class Quantities:
    """Builds the expression of each quantity; the peak needs every address in a scratchpad."""

    def __init__(self, variables: Variables, room: Room) -> None:
        self._vars = variables
        self._lookup = variables.lookup
        self._room = room

    def of(self, quantity: Quantity) -> Linear:
        """Return an expression of a quantity; of the peak, one that is at least as large."""
        if quantity is Quantity.MAKESPAN:
            return self._vars.makespan
        if quantity is Quantity.DRAM_TRAFFIC:
            return self._traffic()
        if quantity is Quantity.ENERGY:
            return self._energy()
        return self._peak()

    def _traffic(self) -> Linear:
        """Bytes of transfers, once at the source and once at each destination, if a DRAM."""
        parts: list[Number] = []
        for key, stay in self._vars.stays.items():
            parts += [fill.way.traffic * found for fill, found in stay.transfers()]
            if self._lookup.machine.memories[key.memory].kind is MemoryKind.DRAM:
                size = self._lookup.problem.slices[key.slice].bytes
                parts += [size * rides for rides in stay.rides.values()]
        return total(parts)

    def _energy(self) -> Linear:
        """Of each task in its pool, and of the transfers' memories and links."""
        parts: list[Number] = []
        pools = self._lookup.tables.pools
        for task, times in zip(self._lookup.problem.tasks, self._vars.tasks, strict=True):
            for pool, here in times.pools.items():
                if task.energy:
                    parts.append((task.energy[pools[pool].kind] or 0) * here)
        for stay in self._vars.stays.values():
            parts += [fill.way.energy * found for fill, found in stay.transfers()]
            parts += self._energy_of_multicasts(stay)
        return total(parts)

    def _energy_of_multicasts(self, stay: StayVars) -> list[Number]:
        machine, key = self._lookup.machine, stay.shape.stay
        size = self._lookup.problem.slices[key.slice].bytes
        own = machine.memories[key.memory].energy_per_byte or 0
        parts: list[Number] = [size * own * rides for rides in stay.rides.values()]
        for (link, _), held in self._vars.extra_links.get(key, {}).items():
            parts.append(size * (machine.links[link].energy_per_byte or 0) * held)
        return parts

    def _peak(self) -> Linear:
        program = self._vars.program
        scratchpads = self._lookup.machine.spms
        peak = program.number(
            "peak", 0, max((memory.size or 0 for memory in scratchpads), default=0)
        )
        for memory in scratchpads:
            for item in self._room.items.get(memory.index, []):
                if item.key is not None:
                    top = memory.alignment * item.offset + item.bytes
                    program.at_least(peak, top, 1 - item.present)
        return peak
