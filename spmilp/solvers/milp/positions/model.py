"""The program of one order of tasks, or of the first tasks of many orders."""

from collections.abc import Sequence

from spmilp.solvers.milp.positions.rows import PositionRows
from spmilp.solvers.milp.positions.tables import PositionTables
from spmilp.solvers.milp.positions.variables import PositionVariables
from spmilp.solvers.milp.program import Program, total
from spmilp.units import Cycles, TaskIdx


class PositionModel:
    """A program whose minimum no plan is below that begins with some tasks in this order.

    Parameters
    ----------
    order
        All tasks, or the first ones.
    floor
        No plan is below.
    ceiling
        Only plans of at most so many cycles are in the program.
    """

    def __init__(
        self, tables: PositionTables, order: Sequence[TaskIdx], floor: Cycles, ceiling: Cycles
    ) -> None:
        self.tables = tables
        self.ceiling = ceiling
        self.program = Program()
        self.variables = PositionVariables(tables, self.program, order, ceiling)
        PositionRows(self.variables).add_all()
        makespan = total(self.variables.lengths)
        self.program.at_least(makespan, floor)
        self.program.at_most(makespan, ceiling)
        self.program.objective = makespan
