"""Tasks of a problem whose cycles no measurement covers."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from spmilp.frontend.graph import Network
from spmilp.frontend.operators.family import Work
from spmilp.lowering.cost import can_run, task_cycles
from spmilp.lowering.groups import Computation, reduction_length
from spmilp.lowering.learned import LearnedCycles, features_of
from spmilp.machine.machine import CoreKind
from spmilp.problem.problem import Problem
from spmilp.quantities import count

MOST_EXAMPLES = 3


def what_lies_outside(network: Network, problem: Problem, origin: str) -> Iterator[str]:
    """Yield a warning for each kind of core some of whose tasks have the analytic model's cycles.

    Parameters
    ----------
    origin
        What the cost model is called.
    """
    groups = {group.name: group for group in network.groups}

    @cache
    def computation(name: str) -> tuple[Computation, int]:
        length = reduction_length(network, groups[name])
        return Computation(network, groups[name], length), length

    for kind in problem.machine.kinds:
        if not isinstance(kind.measured, LearnedCycles):
            continue
        reasons: Counter[str] = Counter()
        for task in problem.tasks:
            if task.tile is None or not can_run(kind, groups[task.tile.of]):
                continue
            group = groups[task.tile.of]
            made, length = computation(group.name)
            work = made.work(task.tile.box, task.tile.reduction or (0, length))
            operator = group.operators[group.anchor].kind
            if why := _why_outside(kind, kind.measured, operator, work):
                reasons[why] += 1
        if reasons:
            examples = "; ".join(why for why, _ in reasons.most_common(MOST_EXAMPLES))
            more = "; …" if len(reasons) > MOST_EXAMPLES else ""
            yield (
                f"{origin}: {reasons.total():,} of {count(len(problem.tasks), 'task')} on "
                f"{kind.name} lie outside of what was measured, and have the cycles of the "
                f"analytic model ({examples}{more})"
            )


def _why_outside(kind: CoreKind, learned: LearnedCycles, operator: str, work: Work) -> str:
    rule = task_cycles(work, kind)
    if rule is None:
        return ""
    family = learned.model.of(kind.name, operator, work.dtype)
    if family is None:
        return f"{operator} {work.dtype}: nothing learned"
    why = family.outside(features_of(work.loops, work.vector, rule))
    return f"{operator} {work.dtype}: {why}" if why else ""
