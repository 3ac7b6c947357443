"""The CP-SAT model of a joint window: cores, order, stays, what fills them, and times.

Each slice that a free task reads is read from one *holder* in the memory of its core: a residency
of the rest, what a free task writes, or what a *delivery*, a transfer that may be there, brings
from another holder. The rest of the window is as in :class:`WindowModel`.
"""

from collections.abc import Mapping

from ortools.sat.python import cp_model

from spmilp.solvers.kernels.records import NEVER, NONE
from spmilp.solvers.lns.joint.deliveries import DeliveryModel
from spmilp.solvers.lns.joint.holders import Holder, InPlace, Use
from spmilp.solvers.lns.joint.region import Region
from spmilp.solvers.lns.window_model import Held, Time
from spmilp.solvers.partial_order.schedule import padded, taken
from spmilp.units import Bytes, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class JointModel(DeliveryModel):
    """Decisions about what is free in a region, and all times.

    Attributes
    ----------
    in_place
        What may overwrite what.
    serves
        The holders that may serve a read of an activity, and whether they do.
    """

    def __init__(self, region: Region) -> None:
        self.serves: dict[tuple[int, SliceIdx], list[tuple[Holder, cp_model.IntVar]]] = {}
        self.in_place: list[InPlace] = []
        super().__init__(region)

    def _decide(self) -> None:
        super()._decide()
        self._reads_are_served()
        self._results_may_overwrite_operands()
        self._deliveries_take_bytes()
        self._results_take_bytes()

    def _reads_are_served(self) -> None:
        region, schedule = self.region, self._schedule
        for task in region.tasks:
            reads = region.problem.tasks[task].reads
            for what, old in zip(reads, schedule.reads.values(task), strict=True):
                self._serve(task, what, old, self._memories[task])
        for need in region.needs:
            there = {int(schedule.memory[need.residency]): self._true}
            self._serve(need.activity, need.what, need.residency, there)

    def _serve(
        self,
        act: int,
        what: SliceIdx,
        old: ResidencyIdx,
        memories: Mapping[MemoryIdx, cp_model.IntVar],
    ) -> None:
        finish, was_until = self._finish(act), self._old_finish(act)
        if was_until > self.end:
            # What is read behind the window stays until its end.
            finish, was_until = self.end - self.saved, self.end
        self.serves[act, what] = serves = []
        for memory, is_there in memories.items():
            some, literals = self._holding(what, memory), []
            for holder in some:
                is_old = self._is_where_it_was(holder, old)
                literal = is_there if len(some) == 1 else self._literal(hint=is_old)
                literals.append(literal)
                serves.append((holder, literal))
                use = Use(act, what, literal, finish)
                self._use(holder, use, self._begin(act), was_until if is_old else None)
            self.cp.add(sum(literals) == is_there)

    def _results_may_overwrite_operands(self) -> None:
        slices, schedule = self.region.problem.slices, self._schedule
        by_holder: dict[Holder, list[cp_model.IntVar]] = {}
        for task in self.region.tasks:
            written = {int(schedule.slice[one]): one for one in schedule.fills.values(task)}
            for what, buffer in self.region.problem.tasks[task].in_place:
                if slices[buffer].bytes > slices[what].bytes:
                    continue
                for holder, literal in self.serves[task, what]:
                    if holder.what == what and self._may_be_overwritten(holder):
                        chosen = self._overwrite(task, written[buffer], holder)
                        self.cp.add_implication(chosen, literal)
                        by_holder.setdefault(holder, []).append(chosen)
        for some in by_holder.values():
            self.cp.add_at_most_one(some)

    def _may_be_overwritten(self, holder: Holder) -> bool:
        one = holder.residency
        if one is None:
            return True
        is_taken = holder.end is None and self.window.overwritten_by[one] != NONE
        return not (is_taken or self._schedule.lasting[one])

    def _overwrite(self, task: TaskIdx, new: ResidencyIdx, holder: Holder) -> cp_model.IntVar:
        """Return whether a result overwrites an operand, which all others have read before."""
        old, begin = int(self._schedule.overwrites[new]), self._begin(task)
        chosen = self._literal(hint=old != NONE and self._is_where_it_was(holder, old))
        for use in holder.uses:
            if use.activity != task:
                self.cp.add(use.finish <= begin).only_enforce_if(chosen, use.literal)
            elif use.what != holder.what:
                self.cp.add_implication(chosen, ~use.literal)
        if holder.end is None and holder.residency is not None:
            for act in self.window.touching(holder.residency):
                self.cp.add(self._finish(act) <= begin).only_enforce_if(chosen)
        self.in_place.append(InPlace(new, holder, chosen))
        return chosen

    def _deliveries_take_bytes(self) -> None:
        for one in self.deliveries:
            holder, end = one.holder, one.holder.end
            if end is None or self.region.context.usable[holder.memory] == NEVER:
                continue
            # What nobody reads is not brought.
            literals = [use.literal for use in holder.uses]
            self.cp.add(sum(literals) >= 1).only_enforce_if(holder.present)
            size = self.region.problem.slices[holder.what].bytes
            size = int(padded(self._schedule, size, holder.memory))
            self._occupy(holder.memory, one.start, end, holder.present, size)

    def _results_take_bytes(self) -> None:
        """From the start of the task on; from its end where they overwrite something in place."""
        overwriting: dict[tuple[ResidencyIdx, MemoryIdx], list[cp_model.IntVar]] = {}
        for one in self.in_place:
            overwriting.setdefault((one.new, one.holder.memory), []).append(one.literal)
        for task, memories in self._memories.items():
            for new in self._schedule.fills.values(task):
                for memory, at_all in memories.items():
                    instead = overwriting.get((new, memory), [])
                    at_once = at_all
                    if instead:
                        was_there = memory == self.region.memory_of(task)
                        overwrote = was_there and self._schedule.overwrites[new] != NONE
                        later = self._any_of(instead, hint=overwrote)
                        at_once = self._literal(hint=was_there and not overwrote)
                        self.cp.add(at_once + later == at_all)
                        size = int(taken(self._schedule, new, memory))
                        self._occupy(memory, self._finish(task), self._ends[new], later, size)
                    size = int(taken(self._schedule, new, memory))
                    self._occupy(memory, self._begin(task), self._ends[new], at_once, size)

    def _occupy(
        self,
        memory: MemoryIdx,
        begin: Time,
        end: cp_model.IntVar,
        present: cp_model.IntVar,
        size: Bytes,
    ) -> None:
        length = self.cp.new_int_var(0, self.end, "")
        stay = self.cp.new_optional_interval_var(begin, length, end, present, "")
        self._extra_in.setdefault(memory, []).append(Held(stay, size))
