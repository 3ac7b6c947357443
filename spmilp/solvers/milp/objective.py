"""The quantities of a plan as expressions."""

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.solvers.milp.address_model import AddressModel
from spmilp.solvers.milp.program import Linear, Number, total
from spmilp.solvers.milp.variables import CandidateVars, Variables


class Quantities:
    """Builds the expression of each quantity; the peak needs every address in a scratchpad."""

    def __init__(self, variables: Variables, addresses: AddressModel) -> None:
        self._vars = variables
        self._tables = variables.tables
        self._addresses = addresses

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
        """Bytes of transfers, at the source and at each destination that are DRAMs."""
        parts: list[Number] = []
        for key, candidate in self._vars.candidates.items():
            parts += [fill.option.traffic * found for fill, found in candidate.fills.all]
            if self._tables.machine.memories[key.memory].kind is MemoryKind.DRAM:
                size = self._tables.problem.slices[key.slice].bytes
                parts += [size * joins for joins in candidate.multicasts.values()]
        return total(parts)

    def _energy(self) -> Linear:
        """Of each task in its pool, and of the transfers' memories and links."""
        parts: list[Number] = []
        pools = self._tables.pools
        for task, times in zip(self._tables.problem.tasks, self._vars.tasks, strict=True):
            for pool, here in times.pools.items():
                if task.energy:
                    parts.append((task.energy[pools[pool].kind] or 0) * here)
        for candidate in self._vars.candidates.values():
            parts += [fill.option.energy * found for fill, found in candidate.fills.all]
            parts += self._energy_of_multicasts(candidate)
        return total(parts)

    def _energy_of_multicasts(self, candidate: CandidateVars) -> list[Number]:
        machine, key = self._tables.machine, candidate.shape.key
        size = self._tables.problem.slices[key.slice].bytes
        own = machine.memories[key.memory].energy_per_byte or 0
        parts: list[Number] = [size * own * joins for joins in candidate.multicasts.values()]
        for (link, _), held in self._vars.extra_links.get(key, {}).items():
            parts.append(size * (machine.links[link].energy_per_byte or 0) * held)
        return parts

    def _peak(self) -> Linear:
        program = self._vars.program
        scratchpads = self._tables.machine.spms
        peak = program.number(
            "peak", 0, max((memory.size or 0 for memory in scratchpads), default=0)
        )
        for memory in scratchpads:
            for item in self._addresses.items.get(memory.index, []):
                if item.key is not None:
                    top = memory.alignment * item.offset + item.bytes
                    program.at_least(peak, top, 1 - item.present)
        return peak
