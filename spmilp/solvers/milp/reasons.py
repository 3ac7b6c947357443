"""Why there is no plan, as a message, once that is proven."""

from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.infeasibility import what_cannot_be, what_is_short
from spmilp.solvers.milp.messages import Limits
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.solution import repaired
from spmilp.solvers.milp.structure import Structure
from spmilp.solvers.milp.tables import MilpTables
from spmilp.units import Bytes, MemoryIdx


def why_impossible(
    tables: MilpTables, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> str:
    """Return the first task, read or buffer that is impossible, or how many bytes are short."""
    reason = what_cannot_be(
        tables.problem,
        runs=lambda task: bool(tables.memories_of(task)),
        is_served=lambda task, position: bool(structure.servers[task, position]),
        ends=lambda buffer, memory: bool(structure.of(buffer, memory)),
    )
    return reason or what_is_short(
        tables.problem, _bytes_short(tables, structure, settings, backend, limits)
    )


def _bytes_short(
    tables: MilpTables, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> dict[MemoryIdx, Bytes] | None:
    """Let every memory grow, and return by how much each has to at the least."""
    aim = Aim(
        quantity=Quantity.MAKESPAN,
        ceilings={},
        floor=0,
        ceiling=None,
        horizon=cycles_in_turn(tables, structure),
    )
    model = Model(tables, structure, aim, growing=True)
    outcome = run(model.program, backend, limits)
    values = repaired(model.program, outcome.values) if outcome.values is not None else None
    if values is None or not outcome.complete:
        return None
    memories = tables.machine.memories
    return {
        m: more.value(values) * memories[m].alignment for m, more in model.addresses.growth.items()
    }
