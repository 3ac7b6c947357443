"""Lower bounds on the period of a stream of inferences: what each of them takes is taken anew."""

from collections.abc import Iterator

from spmilp.bounds.proof import Bound, Proof
from spmilp.bounds.resources import kinds_able, unions
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.units import Cycles


def period_bound(problem: Problem) -> Bound:
    """Return the largest bound on the period: no stream of the problem's inferences has less."""
    return max((proof.bound() for proof in proofs_of_period(problem)), key=lambda one: one.value)


def proofs_of_period(problem: Problem) -> Iterator[Proof]:
    """Yield a proof of every bound on the period in cycles, the quick ones first."""
    yield Proof("work", Quantity.PERIOD, lambda: work_period(problem))


def work_period(problem: Problem) -> Cycles:
    """Return the least period in which cores can run all tasks of an inference.

    Let K be a set of kinds and Q the tasks that no other kind can run. In each period the cores of
    K run all of Q, each core one task at a time, so ``period >= ceil(sum cycles(Q) / cores(K))``.
    Of the longest ``j * cores(K) + 1`` tasks of Q some core runs ``j + 1``, which take at least
    what the least ``j + 1`` of them take; ``j`` of 0 is the longest task.
    """
    present = {core.kind for core in problem.machine.cores}
    best, able = 1, [kinds_able(task.cycles) & present for task in problem.tasks]
    for kinds in unions(set(able)):
        cores = sum(core.kind in kinds for core in problem.machine.cores)
        lengths = sorted(
            (
                min(task.cycles[kind] or 0 for kind in some or kinds_able(task.cycles))
                for task, some in zip(problem.tasks, able, strict=True)
                if some <= kinds
            ),
            reverse=True,
        )
        best = max([best, *lengths[:1]])
        if cores > 0:
            ends = range(0, len(lengths), cores)
            crowded = (sum(lengths[at - at // cores : at + 1]) for at in ends)
            best = max([best, -(-sum(lengths) // cores), *crowded])
    return best
