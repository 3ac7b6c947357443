"""One CP-SAT model of a problem within a scope."""

from collections.abc import Mapping

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.constraints import Constraints
from spmilp.solvers.cpsat.hints import add_hints
from spmilp.solvers.cpsat.objective import Objectives
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.room import Crowds, Room
from spmilp.solvers.cpsat.strengthen import strengthen
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.symmetry import use_memories_in_order
from spmilp.solvers.cpsat.variables import Variables
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Cycles


class Model:
    """A model with its variables and an objective.

    Parameters
    ----------
    quantity
        What is made small.
    ceilings
        Largest values allowed of other quantities.
    floor, best
        A lower bound on the quantity itself, and the value of the best plan.
    crowds, everywhere
        What has addresses; see :class:`~spmilp.solvers.cpsat.room.Room`.
    reading
        A plan to start from.
    """

    def __init__(
        self,
        tables: ProblemTables,
        structure: Structure,
        options: CpSatOptions,
        *,
        horizon: Cycles,
        quantity: Quantity,
        ceilings: Mapping[Quantity, int],
        floor: int,
        best: int | None,
        crowds: Crowds,
        everywhere: bool,
        reading: Reading | None,
    ) -> None:
        self.cp = cp_model.CpModel()
        self.quantity = quantity
        self.variables = Variables(self.cp, tables, structure, horizon)
        room = Room(self.cp, tables, self.variables, crowds, everywhere)
        Constraints(self.cp, tables, self.variables, room).add_all()
        strengthen(self.cp, tables, self.variables, options, everywhere or bool(crowds))
        if options.cores_in_order and structure.scope.fills is None:
            use_memories_in_order(self.cp, tables, self.variables, reading)
        objectives = Objectives(self.cp, tables, self.variables)
        for other, limit in ceilings.items():
            self.cp.add(objectives.of(other) <= limit)
        objective = objectives.of(quantity)
        self.cp.minimize(objective)
        self.low, self.high = floor, best
        if reading is not None:
            add_hints(self.cp, tables, self.variables, reading)
