"""One model of a problem: its variables, its rows and its objective."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.address_model import AddressModel
from spmilp.solvers.milp.congruence import Congruences
from spmilp.solvers.milp.constraints import Constraints, add_multicasts
from spmilp.solvers.milp.objective import Quantities
from spmilp.solvers.milp.program import Linear, Program
from spmilp.solvers.milp.resources import Orders, add_resources
from spmilp.solvers.milp.strengthen import strengthen
from spmilp.solvers.milp.structure import Structure
from spmilp.solvers.milp.tables import MilpTables
from spmilp.solvers.milp.variables import Variables
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The objective of a model, with known bounds.

    Parameters
    ----------
    ceilings
        The greatest values allowed of other quantities.
    floor, ceiling
        Bounds on the quantity itself; ``None`` for no upper one.
    horizon
        A cycle by which the plans that are looked for have ended.
    """

    quantity: Quantity
    ceilings: Mapping[Quantity, int]
    floor: int
    ceiling: int | None
    horizon: Cycles


class Model:
    """A program with the meaning of its variables.

    Parameters
    ----------
    growing
        Whether memories may be larger than they are; then the objective is the sum of the bytes
        that they grow by, whatever the aim says.
    """

    def __init__(
        self,
        tables: MilpTables,
        structure: Structure,
        aim: Aim,
        growing: bool = False,
    ) -> None:
        self.tables = tables
        self.structure = structure
        self.program = Program()
        self.variables = Variables(self.program, tables, structure, aim.horizon)
        orders = Orders(self.variables)
        self.addresses = AddressModel(self.variables, orders, growing)
        self.addresses.add_items()
        self.addresses.add_pairs_in_place()
        Constraints(self.variables).add_all()
        add_multicasts(self.variables)
        add_resources(self.variables, orders)
        self.addresses.add_all()
        if tables.modulus > 1:
            Congruences(self.variables, self.addresses).add_all()
        strengthen(self.variables, self.addresses)
        self._aim_at(aim, growing)

    def _aim_at(self, aim: Aim, growing: bool) -> None:
        memories = self.tables.machine.memories
        if growing:
            grown = (memories[m].alignment * more for m, more in self.addresses.growth.items())
            self.program.objective = sum(grown, Linear())
            return
        quantities = Quantities(self.variables, self.addresses)
        for other, limit in aim.ceilings.items():
            self.program.at_most(quantities.of(other), limit)
        objective = quantities.of(aim.quantity)
        self.program.at_least(objective, aim.floor)
        if aim.ceiling is not None:
            self.program.at_most(objective, aim.ceiling)
        self.program.objective = objective


def cycles_in_turn(tables: MilpTables, structure: Structure) -> Cycles:
    """Return the cycles of all tasks and transfers one after another, at their slowest.

    A plan in which nothing runs at some cycle can be shortened, so some best plan for any quantity
    has ended by then.
    """
    most = 0
    for task in tables.problem.tasks:
        pools = tables.pools_of(task.index)
        most += max((tables.cycles_on(task.index, pool) for pool in pools), default=0)
        for position, read in enumerate(task.reads):
            servers = structure.servers[task.index, position]
            extra = (
                tables.remote_cycles(read, server.source.memory, server.local) or 0
                for server in servers
            )
            most += max(extra, default=0)
    latency: dict[CandidateResidency, Cycles] = defaultdict(int)
    for shape in structure.shapes.values():
        most += max((fill.option.cycles for fill in shape.fills), default=0)
        for member in shape.multicasts:
            latency[member.root] = max(latency[member.root], member.own.latency)
    return most + sum(latency.values())
