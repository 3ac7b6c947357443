"""From whole values of the model's variables to decisions."""

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.decisions import Decisions, Fill, TaskRun
from spmilp.solvers.milp.model import Model
from spmilp.solvers.milp.variables import CandidateVars


def read_decisions(model: Model, values: dict[int, int]) -> Decisions:
    """Read a solution off whole values."""
    variables = model.variables
    runs = tuple(
        TaskRun(
            pool=next(pool for pool, here in task.pools.items() if here.value(values)),
            start=task.start.value(values),
            end=task.end.value(values),
        )
        for task in variables.tasks
    )
    fills = {
        key: _fill(model, candidate, values)
        for key, candidate in variables.candidates.items()
        if candidate.present.value(values)
    }
    served = {
        key: server.source
        for key, read in variables.reads.items()
        for server, found in (*read.on.items(), *read.late.items())
        if found.value(values)
    }
    return Decisions(
        runs=runs,
        fills=fills,
        served=served,
        outputs=tuple(_outputs(model, fills, values).values()),
        in_place=tuple(pair for pair, found in variables.in_place.items() if found.value(values)),
        late=frozenset(key for key, found in variables.late() if found.value(values)),
    )


def _fill(model: Model, candidate: CandidateVars, values: dict[int, int]) -> Fill:
    start, key = candidate.start.value(values), candidate.shape.key
    for fill, found in candidate.fills.all:
        if found.value(values):
            return Fill(start=start, source=fill.source, engine=fill.option.engine, root=key)
    for member, joins in candidate.multicasts.items():
        if joins.value(values):
            return _fill(model, model.variables.candidates[member.root], values)
    return Fill(start=start)


def _outputs(
    model: Model, fills: dict[CandidateResidency, Fill], values: dict[int, int]
) -> dict[int, CandidateResidency]:
    """Return, for each buffer with an end, the residency that lasts until then."""
    return {
        key.slice: key
        for key, lasts in model.variables.kept.items()
        if key in fills and lasts.value(values)
    }
