"""The CP-SAT model of a scope: what stays, what is stored, what is brought again, at which cost.

A *visit* is a step at which a slice may be in a memory (:mod:`~spmilp.solvers.residency.visits`).
One literal says whether it is there, another whether it stays until the next visit; what does not
stay is brought again, from DRAM or from another memory. A slice comes from DRAM if it began there
or was stored. A store costs the same whenever it is made, so it is made at once, when the slice is
written and certainly there.
"""

from collections.abc import Sequence
from math import gcd

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.addresses import Addresses
from spmilp.solvers.residency.constraints import Constraints
from spmilp.solvers.residency.room import Room
from spmilp.solvers.residency.scope import Scope
from spmilp.solvers.residency.supplies import Supplies
from spmilp.solvers.residency.variables import Variables
from spmilp.solvers.residency.visits import Visits


class Model:
    """The model of one scope, with or without addresses."""

    def __init__(
        self, tables: ProblemTables, scope: Scope, visits: Visits, *, addresses: bool
    ) -> None:
        self.tables = tables
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, tables, scope, visits)
        room = Room(tables, self.variables)
        Constraints(tables, scope, self.variables, room).add_all(self.cp)
        self.addresses = Addresses(self.cp, tables, self.variables, room) if addresses else None
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
        supplies, variables = Supplies(self.tables), self.variables
        costs = [(supplies.cost(s.way), literal) for s, literal in variables.stores.items()]
        for spots in variables.spots.values():
            for spot in spots:
                for fills in (spot.before, spot.after):
                    costs += [(supplies.cost(s.way), fill) for s, fill in fills.items()]
        return costs

    def _costs_of_tasks(self) -> list[tuple[int, cp_model.IntVar]]:
        """Return the energy that runs take on their kind of core, where energy is to be small."""
        if self.tables.problem.objective.first is not Quantity.ENERGY:
            return []
        costs = []
        for run, literal in self.variables.runs.items():
            energy = self.tables.problem.tasks[run.task].energy
            kind = self.tables.pools[run.turn.pool].kind
            costs.append((energy[kind] or 0 if energy else 0, literal))
        return costs

    def _minimise(self) -> None:
        """Make the cost small, and of plans that cost the same the number of transfers."""
        weight = len(self._costs) + 1
        parts = [part * weight + 1 for part in self._parts]
        self.cp.minimize(cp_model.LinearExpr.weighted_sum(self._literals, parts))
