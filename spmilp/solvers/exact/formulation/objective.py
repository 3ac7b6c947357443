"""The quantities of a plan as expressions, and which of them a model makes small."""

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.variables import Literal, Number, ResidencyVars, Variables


class Objectives:
    """Builds the expression of each quantity; the peak needs addresses in the model."""

    def __init__(self, variables: Variables) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables

    def of(self, quantity: Quantity) -> Number:
        """Return an expression of a quantity; of the peak, one that is at least as large."""
        return {
            Quantity.MAKESPAN: lambda: self._vars.makespan,
            Quantity.DRAM_TRAFFIC: self._traffic,
            Quantity.ENERGY: self._energy,
            Quantity.PEAK_SPM: self._peak,
        }[quantity]()

    def _traffic(self) -> Number:
        """Bytes of transfers, once at the source and once at each destination, if a DRAM."""
        terms: list[tuple[Literal, int]] = []
        for residency in self._vars.residencies.values():
            terms += [(taken, option.traffic) for option, taken in residency.options.items()]
            kind = self._tables.machine.memories[residency.key.memory].kind
            if kind is MemoryKind.DRAM:
                size = self._tables.problem.slices[residency.key.slice].bytes
                terms += [(joins, size) for joins in residency.roots.values()]
        return weighted(terms)

    def _energy(self) -> Number:
        """Of each task in its pool, and of the transfers' memories and links."""
        terms = _energy_of_tasks(self._vars)
        for residency in self._vars.residencies.values():
            terms += [(taken, option.energy) for option, taken in residency.options.items()]
            terms += self._energy_of_multicasts(residency)
        return weighted(terms)

    def _energy_of_multicasts(self, residency: ResidencyVars) -> list[tuple[Literal, int]]:
        machine, key = self._tables.machine, residency.key
        size = self._tables.problem.slices[key.slice].bytes
        own = machine.memories[key.memory].energy_per_byte or 0
        terms = [(joins, size * own) for joins in residency.roots.values()]
        for option in residency.options:
            for link, held in self._vars.extra_links.get((key, option), {}).items():
                terms.append((held, size * (machine.links[link].energy_per_byte or 0)))
        return terms

    def _peak(self) -> Number:
        sizes = [
            memory.size
            for memory in self._tables.machine.memories
            if memory.kind is MemoryKind.SPM and memory.size is not None
        ]
        peak = self._model.new_int_var(0, max(sizes, default=0), "peak")
        for (memory_index, item), offset in self._vars.offsets.items():
            memory = self._tables.machine.memories[memory_index]
            if memory.kind is not MemoryKind.SPM:
                continue
            if isinstance(item, CandidateResidency):
                size = self._tables.problem.slices[item.slice].bytes
                here = self._vars.residencies[item].present
            else:
                size = self._tables.problem.tasks[item].scratch
                here = self._vars.tasks[item].memories[memory_index]
            self._model.add(peak >= offset * memory.alignment + size).only_enforce_if(here)
        return peak


def _energy_of_tasks(variables: Variables) -> list[tuple[Literal, int]]:
    """Return what each task takes in each of its pools."""
    tables = variables.tables
    return [
        (here, task.energy[tables.pools[pool].kind] or 0)
        for task, times in zip(tables.problem.tasks, variables.tasks, strict=True)
        for pool, here in times.pools.items()
        if task.energy
    ]


def weighted(terms: list[tuple[Literal, int]]) -> Number:
    """Return the sum of literals times weights."""
    kept = [(literal, weight) for literal, weight in terms if weight]
    return cp_model.LinearExpr.weighted_sum(
        [literal for literal, _ in kept], [weight for _, weight in kept]
    )
