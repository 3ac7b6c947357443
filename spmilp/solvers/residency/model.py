"""The CP-SAT model of a course: what stays, what is stored, what is brought again, at which cost.

A *visit* is a step at which a slice may be in a memory (:mod:`~spmilp.solvers.residency.visits`).
One literal says whether it is there, another whether it stays until the next visit; what does not
stay is brought again, from DRAM or from another memory. A slice comes from DRAM if it began there
or was stored. A store costs the same whenever it is made, so it is made at once, when the slice is
written and certainly there.
"""

from collections.abc import Sequence
from math import gcd

from ortools.sat.python import cp_model

from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.residency.addresses import Addresses
from spmilp.solvers.residency.constraints import Constraints
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.room import Room
from spmilp.solvers.residency.supplies import Supplies
from spmilp.solvers.residency.variables import Variables


class Model:
    """The model of one course, with or without addresses.

    Attributes
    ----------
    grain
        The greatest common divisor of all costs: the first quantity comes in steps of it.
    """

    def __init__(self, tables: Tables, course: Course, *, addresses: bool) -> None:
        self.tables = tables
        self.course = course
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, tables, course)
        room = Room(tables, course, self.variables)
        Constraints(tables, course, self.variables, room).add_all(self.cp)
        self.addresses = None
        if addresses:
            self.addresses = Addresses(self.cp, tables, self.variables, room)
        self._costs = self._all_costs()
        self.grain = gcd(*(cost for cost, _ in self._costs)) or 1
        self._minimise()

    def _all_costs(self) -> list[tuple[int, cp_model.IntVar]]:
        supplies, variables = Supplies(self.tables), self.variables
        costs = [(supplies.cost(one.way), one.literal) for one in variables.stores.values()]
        for spots in variables.spots.values():
            for spot in spots:
                costs += [(supplies.cost(s.way), fill) for s, fill in spot.fills.items()]
        return costs

    def _minimise(self) -> None:
        """Make the cost small, and of plans that cost the same the number of transfers."""
        weight = len(self._costs) + 1
        self.cp.minimize(
            cp_model.LinearExpr.weighted_sum(
                [literal for _, literal in self._costs],
                [cost // self.grain * weight + 1 for cost, _ in self._costs],
            )
        )

    def improve_on(self, plan: Plan) -> None:
        """Ask for less of the first quantity than a plan has."""
        measures = claimed(plan.claim)
        most = measures.of(self.tables.problem.objective.first) - self._cost_of_tasks() - 1
        total = cp_model.LinearExpr.weighted_sum(
            [literal for _, literal in self._costs], [cost // self.grain for cost, _ in self._costs]
        )
        self.cp.add(total <= most // self.grain)

    def hint(self, values: Sequence[int]) -> None:
        """Begin near a solution of the model of the same course without addresses."""
        for index, value in enumerate(values):
            self.cp.add_hint(self.cp.get_int_var_from_proto_index(index), value)

    def _cost_of_tasks(self) -> int:
        """Return what the tasks themselves add to the first quantity: the energy of their cores."""
        if self.tables.problem.objective.first is not Quantity.ENERGY:
            return 0
        kinds = [self.tables.pools[pool].kind for pool in self.course.pools]
        tasks = zip(self.tables.problem.tasks, kinds, strict=True)
        return sum(task.energy[kind] or 0 for task, kind in tasks if task.energy)
