"""The CP-SAT model of a scope: what is kept, stored and loaded again, at which cost.

A *use point* is a step at which a slice may be in a memory
(:mod:`~spmilp.solvers.residency.use_points`). One literal says whether it is there, another whether
it is kept until the next one; what is not kept is loaded again, from DRAM or from another memory. A
slice comes from DRAM if it began there or was stored. A store costs the same whenever it is made,
so it is made at once, when the slice is written and certainly there.
"""

from collections.abc import Sequence
from math import gcd

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.residency.constraints import Constraints
from spmilp.solvers.residency.occupancy import Occupancies, Offsets
from spmilp.solvers.residency.use_points import UsePoints
from spmilp.solvers.residency.variables import CheapestTransfers, Variables


class Model:
    """The model of one scope, with or without addresses."""

    def __init__(self, use_points: UsePoints, *, addresses: bool) -> None:
        self.tables = use_points.tables
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, use_points)
        occupancies = Occupancies(self.variables)
        Constraints(self.variables, occupancies).add_all()
        self.addresses = Offsets(self.variables, occupancies) if addresses else None
        self._costs = [*self._costs_of_transfers(), *self._costs_of_tasks()]
        # The first quantity comes in steps of the greatest common divisor.
        self._grain = gcd(*(cost for cost, _ in self._costs)) or 1
        self._literals = [literal for _, literal in self._costs]
        self._parts = [cost // self._grain for cost, _ in self._costs]
        self._minimise()

    def limit(self, most: int) -> None:
        """Ask for so much of the first quantity at most."""
        total = cp_model.LinearExpr.weighted_sum(self._literals, self._parts)
        self.cp.add(total <= most // self._grain)

    def hint(self, values: Sequence[int]) -> None:
        """Begin near a solution of the model of the same scope without addresses."""
        for index, value in enumerate(values):
            self.cp.add_hint(self.cp.get_int_var_from_proto_index(index), value)

    def _costs_of_transfers(self) -> list[tuple[int, cp_model.IntVar]]:
        cheapest, variables = CheapestTransfers(self.tables), self.variables
        costs = [(cheapest.cost(s.option), literal) for s, literal in variables.stores.items()]
        for _, point in variables.all_points():
            for loads in (point.loads_before, point.loads_after):
                costs += [(cheapest.cost(s.option), load) for s, load in loads.items()]
        return costs

    def _costs_of_tasks(self) -> list[tuple[int, cp_model.IntVar]]:
        """Return the energy that runs take on their kind of core, where energy is to be small."""
        if self.tables.problem.objective.first is not Quantity.ENERGY:
            return []
        costs = []
        for run, literal in self.variables.runs.items():
            energy = self.tables.problem.tasks[run.task].energy
            kind = self.tables.pools[run.slot.pool].kind
            costs.append((energy[kind] or 0 if energy else 0, literal))
        return costs

    def _minimise(self) -> None:
        """Make the cost small, and of plans that cost the same the number of transfers."""
        weight = len(self._costs) + 1
        parts = [part * weight + 1 for part in self._parts]
        self.cp.minimize(cp_model.LinearExpr.weighted_sum(self._literals, parts))
