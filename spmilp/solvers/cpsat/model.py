"""One CP-SAT model of a problem within a scope."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.capacity import Addressed, CapacityModel
from spmilp.solvers.cpsat.constraints import Constraints
from spmilp.solvers.cpsat.hints import add_hints
from spmilp.solvers.cpsat.objective import Objectives
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.strengthen import strengthen
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.symmetry import use_memories_in_order
from spmilp.solvers.cpsat.variables import Variables
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a model makes small, and what is known of it.

    Parameters
    ----------
    horizon
        A cycle by which the plans that are looked for have ended.
    floor, best
        A lower bound on the quantity, and its value in the best plan.
    ceilings
        Largest values allowed of other quantities.
    reading
        The best plan, to start from.
    """

    quantity: Quantity
    horizon: Cycles
    floor: int
    best: int | None = None
    ceilings: Mapping[Quantity, int] = field(default_factory=dict)
    reading: Reading | None = None


class Model:
    """A model with its variables and an objective."""

    def __init__(
        self,
        tables: ProblemTables,
        structure: Structure,
        aim: Aim,
        addressed: Addressed,
        settings: CpSatOptions,
    ) -> None:
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, tables, structure, aim.horizon)
        Constraints(self.variables, CapacityModel(self.variables, addressed)).add_all()
        strengthen(self.variables, settings, addressed=addressed.anything())
        if settings.cores_in_order and structure.scope.fills is None:
            use_memories_in_order(self.variables, aim.reading)
        objectives = Objectives(self.variables)
        for other, limit in aim.ceilings.items():
            self.cp.add(objectives.of(other) <= limit)
        self.cp.minimize(objectives.of(aim.quantity))
        self.low, self.high = aim.floor, aim.best
        if aim.reading is not None:
            add_hints(self.variables, aim.reading)
