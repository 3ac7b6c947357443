"""From a solver's floating values to whole ones that keep every row, and to decisions.

A solver's values are whole up to a tolerance, and a big-M times that tolerance may be a cycle. So
only the integer variables are taken from the solver, rounded. With them fixed, each row on times or
offsets demands that one of them is at least another one plus a whole number, or at least or at most
a whole number. The least values that satisfy such rows are longest paths, whole numbers, and no
time or offset of any solution is smaller (Bellman, "On a routing problem", Quarterly of Applied
Mathematics 16, 1958). So makespan and offsets only get better. The few rows of another form (work
over time, the peak's) are no rules of a plan: the plan's quantities are measured anew, and the
checker decides.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Decisions, Fill, TaskRun
from spmilp.solvers.milp.model import Model
from spmilp.solvers.milp.program import Linear, Program
from spmilp.solvers.milp.variables import CandidateVars


class Step(NamedTuple):
    """``target >= source + distance``; a variable of ``None`` is 0."""

    source: int | None
    target: int | None
    distance: int


def repaired(program: Program, values: Sequence[float]) -> dict[int, int] | None:
    """Return whole values of all variables, or ``None`` if the solver's are no solution."""
    fixed = {one.index: round(values[one.index]) for one in program.variables if one.whole}
    free = {one.index: one.low for one in program.variables if not one.whole}
    steps = [Step(one, None, -program.variables[one].high) for one in free]
    for row in program.rows:
        left = _with(row.left, fixed)
        if not left.terms:
            if left.constant < 0 or (row.equal and left.constant):
                return None
            continue
        steps += _steps(left)
        if row.equal:
            steps += _steps(left * -1)
    found = _longest_paths(free, steps)
    return None if found is None else fixed | found


def _with(left: Linear, fixed: dict[int, int]) -> Linear:
    terms = {index: c for index, c in left.terms.items() if index not in fixed}
    constant = sum(c * fixed[index] for index, c in left.terms.items() if index in fixed)
    return Linear(terms, left.constant + constant)


def _steps(left: Linear) -> list[Step]:
    """Return ``left >= 0`` as a step; nothing if it is of another form."""
    ups = [index for index, factor in left.terms.items() if factor == 1]
    downs = [index for index, factor in left.terms.items() if factor == -1]
    if len(ups) > 1 or len(downs) > 1 or len(ups) + len(downs) < len(left.terms):
        return []
    target, source = (some[0] if some else None for some in (ups, downs))
    return [Step(source, target, -left.constant)]


def _longest_paths(least: dict[int, int], steps: Sequence[Step]) -> dict[int, int] | None:
    """Return the least values that satisfy all steps; ``None`` if there are none."""
    found = dict(least)
    for _ in range(len(found) + 1):
        changed = False
        for source, target, distance in steps:
            reached = distance if source is None else found[source] + distance
            if target is None:
                if reached > 0:
                    return None
            elif found[target] < reached:
                found[target] = reached
                changed = True
        if not changed:
            return found
    return None


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
