"""The scope of a plan whose decisions are kept and whose times are free."""

from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import EngineIdx, ResidencyIdx, TaskIdx


def scope_of_plan(tables: ProblemTables, reading: Reading, whole: Scope) -> Scope:
    """Return the scope in which every task keeps its pool, and every residency its filling.

    The order on every core, engine and link is free, and so are all times.
    """
    plan = reading.plan

    def stay_of(residency: ResidencyIdx) -> CandidateResidency:
        stay = reading.stay[residency]
        return stay._replace(number=0) if stay[:2] in whole.lasting else stay

    fills: dict[CandidateResidency, tuple[CandidateResidency, EngineIdx] | None] = {}
    for residency in sorted(reading.needed, key=lambda r: (reading.valid(r), r)):
        if plan.residencies[residency].slice is None:
            continue
        filler = plan.residencies[residency].filled_by_transfer
        given = None
        if filler is not None:
            move = plan.transfers[filler]
            given = (stay_of(move.source), move.engine)
        fills.setdefault(stay_of(residency), given)
    servers: dict[tuple[TaskIdx, int], CandidateResidency] = {
        (placement.task, position): stay_of(residency)
        for placement in plan.placements
        for position, residency in enumerate(placement.reads)
    }
    pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
    return Scope(
        pools=tuple((pool_of[placement.core],) for placement in plan.placements),
        stays=tuple(sorted(fills)),
        lasting=whole.lasting,
        conflicts=tuple((a, b) for a, b in whole.conflicts if a in fills and b in fills),
        relaxed=False,
        fills=fills,
        servers=servers,
    )
