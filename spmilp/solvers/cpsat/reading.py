"""A plan in the model's terms: which residency is which stay."""

from collections import defaultdict
from collections.abc import Iterator

from spmilp.plan.plan import Placement, Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.units import Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class Reading:
    """The residencies of a plan that something needs, numbered as stays.

    Attributes
    ----------
    stay
        The stay of each needed residency. What is there at cycle 0 is part of the whole buffer's
        stay.
    counts
        How many stays a slice has in a memory.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.needed = self._needed()
        self.stay: dict[ResidencyIdx, CandidateResidency] = {}
        self.counts: dict[tuple[SliceIdx, MemoryIdx], int] = {}
        self._number()

    def valid(self, residency: ResidencyIdx) -> Cycles:
        """Return the cycle from which a residency is valid."""
        stay = self.plan.residencies[residency]
        if stay.filled_by_task is not None:
            return self.plan.placements[stay.filled_by_task].end
        if stay.filled_by_transfer is not None:
            return self.plan.transfers[stay.filled_by_transfer].end
        return stay.start

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
        waiting += list(self._outputs())
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

    def _number(self) -> None:
        together: dict[tuple[SliceIdx, MemoryIdx], list[Residency]] = defaultdict(list)
        for index in self.needed:
            stay = self.plan.residencies[index]
            if stay.slice is None:
                continue
            slice_ = stay.slice
            if stay.filled_by_task is None and stay.filled_by_transfer is None:
                slice_ = self.problem.slices[slice_].buffer
            together[slice_, stay.memory].append(stay)
        for (slice_, memory), stays in together.items():
            stays.sort(key=lambda stay: (self.valid(stay.index), stay.index))
            initial = [stay for stay in stays if self._is_initial(stay)]
            rest = [stay for stay in stays if not self._is_initial(stay)]
            first = 1 if initial else 0
            for stay in initial:
                self.stay[stay.index] = CandidateResidency(slice_, memory, 0)
            for number, stay in enumerate(rest, start=first):
                self.stay[stay.index] = CandidateResidency(slice_, memory, number)
            self.counts[slice_, memory] = first + len(rest)

    def _is_initial(self, stay: Residency) -> bool:
        return stay.filled_by_task is None and stay.filled_by_transfer is None

    def placement(self, task: TaskIdx) -> Placement:
        """Return the placement of a task."""
        return self.plan.placements[task]
