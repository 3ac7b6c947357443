"""Why there is no plan, in words, once that is proven."""

from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.infeasibility import what_cannot_be, what_is_short
from spmilp.solvers.milp.lookup import Lookup
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.outcome import Limits
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.repair import repaired
from spmilp.solvers.milp.stays import Structure
from spmilp.units import Bytes, MemoryIdx


def why_impossible(
    lookup: Lookup, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> str:
    """Return what cannot be reached, or how many bytes are short."""
    reason = what_cannot_be(
        lookup.problem,
        runs=lambda task: bool(lookup.memories_of(task)),
        is_served=lambda task, position: bool(structure.servers[task, position]),
        ends=lambda buffer, memory: bool(structure.of(buffer, memory)),
    )
    return reason or what_is_short(
        lookup.problem, _bytes_short(lookup, structure, settings, backend, limits)
    )


def _bytes_short(
    lookup: Lookup, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> dict[MemoryIdx, Bytes] | None:
    """Let every memory be larger than it is, and return by how much each has to be at least."""
    aim = Aim(
        quantity=Quantity.MAKESPAN,
        ceilings={},
        floor=0,
        ceiling=None,
        horizon=cycles_in_turn(lookup, structure),
    )
    model = Model(lookup, structure, settings, aim, growing=True)
    outcome = run(model.program, backend, limits)
    values = repaired(model.program, outcome.values) if outcome.values is not None else None
    if values is None or not outcome.complete:
        return None
    memories = lookup.machine.memories
    return {m: more.value(values) * memories[m].alignment for m, more in model.room.growth.items()}
