"""A plan in the model's terms: which residency is which candidate."""

from collections import defaultdict
from collections.abc import Iterator

from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.places import SliceInMemory
from spmilp.units import Cycles, ResidencyIdx, TaskIdx


class Reading:
    """The residencies of a plan that something needs, numbered as candidates.

    Attributes
    ----------
    key
        The candidate that each needed residency is. What is there at cycle 0 is part of the whole
        buffer's.
    counts
        How many residencies a slice has in a memory.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.needed = self._needed()
        self.key: dict[ResidencyIdx, CandidateResidency] = {}
        self.counts: dict[SliceInMemory, int] = {}
        self._number()

    def valid(self, residency: ResidencyIdx) -> Cycles:
        """Return the cycle from which a residency is valid."""
        one = self.plan.residencies[residency]
        if one.filled_by_task is not None:
            return self.plan.placements[one.filled_by_task].end
        if one.filled_by_transfer is not None:
            return self.plan.transfers[one.filled_by_transfer].end
        return one.start

    def pairs_in_place(self) -> Iterator[tuple[TaskIdx, ResidencyIdx, ResidencyIdx]]:
        """Yield the task, operand and result of each pair that shares bytes."""
        for placement in self.plan.placements:
            task = self.problem.tasks[placement.task]
            for read, written in task.in_place:
                old = placement.reads[task.reads.index(read)]
                new = placement.writes[task.writes.index(written)]
                one, other = self.plan.residencies[old], self.plan.residencies[new]
                same = (one.memory, one.offset, one.slice) == (other.memory, other.offset, read)
                if same and one.end > other.start:
                    yield task.index, old, new

    def _needed(self) -> set[ResidencyIdx]:
        waiting = [r for p in self.plan.placements for r in (*p.reads, *p.writes)]
        waiting += [*self._outputs(), *self._residents()]
        needed: set[ResidencyIdx] = set()
        while waiting:
            residency = waiting.pop()
            if residency in needed:
                continue
            needed.add(residency)
            filler = self.plan.residencies[residency].filled_by_transfer
            if filler is not None:
                waiting.append(self.plan.transfers[filler].source)
        return needed

    def _outputs(self) -> Iterator[ResidencyIdx]:
        """Yield, for each buffer with an end, the residency that is there then."""
        makespan = self.plan.claim.makespan
        for residency in self.plan.residencies:
            if residency.slice is None or residency.slice >= len(self.problem.buffers):
                continue
            ends = self.problem.buffers[residency.slice].ends_in
            if ends == residency.memory and residency.end >= makespan:
                yield residency.index

    def _residents(self) -> Iterator[ResidencyIdx]:
        """Yield what is pinned to be resident."""
        pins = {pin.buffer: pin.memories for pin in self.problem.pins.buffers if pin.resident}
        for residency in self.plan.residencies if pins else ():
            if residency.slice is not None and residency.memory in pins.get(residency.slice, ()):
                yield residency.index

    def _number(self) -> None:
        together: dict[SliceInMemory, list[Residency]] = defaultdict(list)
        for index in self.needed:
            one = self.plan.residencies[index]
            if one.slice is not None:
                buffer = self.problem.slices[one.slice].buffer
                together[buffer if _is_initial(one) else one.slice, one.memory].append(one)
        for (slice_, memory), some in together.items():
            some.sort(key=lambda one: (not _is_initial(one), self.valid(one.index), one.index))
            number = 0
            for before, one in zip([None, *some], some, strict=False):
                # All that is there at cycle 0 lies in the whole buffer's first residency.
                if before is not None and not _is_initial(one):
                    number += 1
                self.key[one.index] = CandidateResidency(slice_, memory, number)
            self.counts[slice_, memory] = number + 1


def _is_initial(one: Residency) -> bool:
    return one.filled_by_task is None and one.filled_by_transfer is None
