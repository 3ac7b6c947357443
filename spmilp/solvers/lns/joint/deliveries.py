"""Holders of slices in a joint window, and the transfers that may fill them."""

from ortools.sat.python import cp_model

from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.lns.joint.holders import Delivery, Holder, Source, Use
from spmilp.solvers.lns.joint.region import Region
from spmilp.solvers.lns.window_model import ExtraUse, Held, Time, WindowModel
from spmilp.solvers.partial_order.transfer_options import TransferOption
from spmilp.units import Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx

MOST_SOURCES = 6
"""Of a delivery, in the rest, and as many deliveries; beside what free tasks write."""


class DeliveryModel(WindowModel):
    """Pools of free tasks, holders of what they read and write, and deliveries between them.

    Attributes
    ----------
    pools
        Of each free task: whether it runs on each of its pools.
    deliveries
        Transfers that may be there.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self._schedule = region.schedule
        self.pools: dict[TaskIdx, dict[int, cp_model.IntVar]] = {}
        self.deliveries: list[Delivery] = []
        self._memories: dict[TaskIdx, dict[MemoryIdx, cp_model.IntVar]] = {}
        self._ends: dict[ResidencyIdx, cp_model.IntVar] = {}
        self._holders: dict[tuple[SliceIdx, MemoryIdx], list[Holder]] = {}
        super().__init__(region.rest)

    def _decide(self) -> None:
        self._true = self.cp.new_constant(1)
        for task, pools in self.region.tasks.items():
            self._choose_pool(task, pools)
        self._find_holders_of_the_rest()
        self._results_are_where_tasks_run()
        self._find_deliveries()
        for one in self.deliveries:
            self._choose_source(one)

    def _old_start(self, act: int) -> Cycles:
        return self.region.whole.old[act] - self.window.start

    def _old_finish(self, act: int) -> Cycles:
        return self._old_start(act) + self.region.whole.cycles[act]

    def _old_end(self, residency: ResidencyIdx) -> Cycles:
        return max(map(self._old_finish, self.region.whole.touching(residency)))

    def _literal(self, *, hint: bool) -> cp_model.IntVar:
        found = self.cp.new_bool_var("")
        self._hint(found, int(hint))
        return found

    def _cycle(self, hint: Cycles) -> cp_model.IntVar:
        found = self.cp.new_int_var(0, self.end, "")
        self._hint(found, min(max(0, hint), self.end))
        return found

    def _choose_pool(self, task: TaskIdx, pools: tuple[int, ...]) -> None:
        region, old = self.region, self.region.pool_of(task)
        chosen: dict[int, cp_model.IntVar] = {old: self._true}
        if len(pools) > 1:
            chosen = {pool: self._literal(hint=pool == old) for pool in pools}
            self.cp.add_exactly_one(chosen.values())
        by_memory: dict[MemoryIdx, list[cp_model.IntVar]] = {}
        for pool, literal in chosen.items():
            by_memory.setdefault(region.reassigner.pools[pool][1], []).append(literal)
            run = self.cp.new_optional_fixed_size_interval_var(
                self.starts[task], self.window.cycles[task], literal, ""
            )
            self._extra_on.setdefault(pool, []).append(Held(run, 1))
        self.pools[task] = chosen
        self._memories[task] = {
            memory: self._any_of(literals, hint=memory == region.memory_of(task))
            for memory, literals in by_memory.items()
        }

    def _any_of(self, literals: list[cp_model.IntVar], *, hint: bool) -> cp_model.IntVar:
        """Return whether one of some literals is true, of which at most one is."""
        if len(literals) == 1:
            return literals[0]
        found = self._literal(hint=hint)
        self.cp.add(sum(literals) == found)
        return found

    def _find_holders_of_the_rest(self) -> None:
        region, schedule = self.region, self._schedule
        whats = {what for task in region.tasks for what in region.problem.tasks[task].reads}
        whats.update(schedule.moved_slice[region.transfers].tolist())
        whats.update(need.what for need in region.needs)
        for one in region.holders(whats | {region.buffer_of(what) for what in whats}):
            filler = self.window.filler[one]
            self._add_holder(
                Holder(
                    what=int(schedule.slice[one]),
                    memory=int(schedule.memory[one]),
                    valid=0 if filler == NONE else self._finish(filler),
                    present=self._true,
                    residency=one,
                )
            )

    def _add_holder(self, holder: Holder) -> None:
        self._holders.setdefault((holder.what, holder.memory), []).append(holder)

    def _results_are_where_tasks_run(self) -> None:
        for task, memories in self._memories.items():
            for one in self._schedule.fills.values(task):
                self._ends[one] = end = self._cycle(self._old_end(one))
                self.cp.add(end >= self._finish(task))
                what = int(self._schedule.slice[one])
                for memory, literal in memories.items() if what != NONE else ():
                    self._add_holder(Holder(what, memory, self._finish(task), literal, end, one))

    def _find_deliveries(self) -> None:
        """Those that there are, and others to where free tasks and old readers may want them."""
        region, schedule = self.region, self._schedule
        for act in region.transfers:
            memory = int(schedule.memory[schedule.fills.values(act)[0]])
            self._deliver(int(schedule.moved_slice[act]), memory, act)
        wanted = [
            (what, memory)
            for task, memories in self._memories.items()
            for what in region.problem.tasks[task].reads
            for memory in memories
        ]
        wanted += [(need.what, int(schedule.memory[need.residency])) for need in region.needs]
        for what, memory in dict.fromkeys(wanted) if region.slots else ():
            always = any(one.present is self._true for one in self._holding(what, memory))
            is_brought = any(one.holder in self._holding(what, memory) for one in self.deliveries)
            if not (always or is_brought or region.context.is_dram[memory]):
                self._deliver(what, memory, None)

    def _deliver(self, what: SliceIdx, memory: MemoryIdx, act: int | None) -> None:
        """Add a delivery by a transfer of the schedule, or by a free slot."""
        schedule, window = self._schedule, self.window
        residency, old_start, old_valid, old_end = None, 0, 0, self.end
        if act is not None:
            (residency,) = schedule.fills.values(act)
            old_start, old_valid = self._old_start(act), self._old_finish(act)
            old_end = self.end if schedule.lasting[residency] else self._old_end(residency)
        one = self.region.slots[0] if act is None else act
        start, valid, end = map(self._cycle, (old_start, old_valid, old_end))
        present = self._literal(hint=act is not None)
        self.cp.add(start >= max(0, window.earliest_start(one) - window.start))
        latest = min(self.end, window.latest_end(one) - window.start)
        self.cp.add(valid + self.saved <= latest)
        self.cp.add(valid <= end).only_enforce_if(present)
        if residency is not None and schedule.lasting[residency]:
            self.cp.add(present == 1)
            self.cp.add(end >= self.end - self.saved)
        holder = Holder(what, memory, valid, present, end, residency)
        self.deliveries.append(Delivery(holder, act, start))
        self._add_holder(holder)

    def _holding(self, what: SliceIdx, memory: MemoryIdx) -> list[Holder]:
        """Return what may hold a slice in a memory."""
        keys = dict.fromkeys([(what, memory), (self.region.buffer_of(what), memory)])
        return [holder for key in keys for holder in self._holders.get(key, ())]

    def _choose_source(self, one: Delivery) -> None:
        target, old = one.holder, NONE
        if one.transfer is not None:
            (old,) = self._schedule.reads.values(one.transfer)
        by_way: dict[TransferOption, list[Source]] = {}
        for holder in self._sources_for(one, old):
            is_old = self._is_where_it_was(holder, old)
            option = self._option(one, holder, is_old=is_old)
            if option is not None:
                source = Source(holder, self._literal(hint=is_old), option)
                one.sources.append(source)
                by_way.setdefault(option, []).append(source)
        self.cp.add(sum(source.literal for source in one.sources) == target.present)
        for option, sources in by_way.items():
            was_taken = any(self._is_where_it_was(source.holder, old) for source in sources)
            literal = self._any_of([source.literal for source in sources], hint=was_taken)
            run = self.cp.new_optional_interval_var(
                one.start, option.cycles, target.valid, literal, ""
            )
            for resource, amount in zip(option.resources, option.amounts, strict=True):
                self._extra_on.setdefault(resource, []).append(Held(run, amount))
        for holder, literal, _ in one.sources:
            was_until = None
            if one.transfer is not None and self._is_where_it_was(holder, old):
                was_until = self._old_finish(one.transfer)
            self._use(
                holder, Use(one.transfer, target.what, literal, target.valid), one.start, was_until
            )

    def _is_where_it_was(self, holder: Holder, old: ResidencyIdx) -> bool:
        return holder.residency == old and holder.memory == self._schedule.memory[old]

    def _sources_for(self, one: Delivery, old: ResidencyIdx) -> list[Holder]:
        """Return from where a slice may be sent: first from where it was sent before."""
        what, memory = one.holder.what, one.holder.memory
        of_slice, is_dram = {what, self.region.buffer_of(what)}, self.region.context.is_dram
        others = [
            holder
            for (held, there), some in self._holders.items()
            if held in of_slice and there != memory
            for holder in some
        ]
        rest = [holder for holder in others if holder.end is None]
        rest.sort(key=lambda holder: not is_dram[holder.memory])
        free = [holder for holder in others if holder.residency in self._ends]
        brought = {delivery.holder for delivery in self.deliveries if delivery.transfer is not None}
        relays = [holder for holder in others if holder in brought]
        first = [holder for holder in others if self._is_where_it_was(holder, old)]
        found = [*first, *free, *rest[:MOST_SOURCES], *relays[:MOST_SOURCES]]
        return [*dict.fromkeys(found)]

    def _option(self, one: Delivery, source: Holder, *, is_old: bool) -> TransferOption | None:
        if is_old and one.transfer is not None:
            demands, act = self._schedule.demands, one.transfer
            amounts = demands._replace(items=self._schedule.amounts)
            cycles = int(self._schedule.cycles[act])
            return TransferOption(cycles, tuple(demands.values(act)), tuple(amounts.values(act)))
        what, memory = one.holder.what, one.holder.memory
        return self.region.reassigner.options.shortest(
            what, source.memory, (memory,), is_part=source.what != what
        )

    def _use(self, holder: Holder, use: Use, begin: Time, was_until: Cycles | None) -> None:
        """Let a holder be there while it is used; ``was_until``: until when it was before."""
        cp, window, literal = self.cp, self.window, use.literal
        holder.uses.append(use)
        cp.add(holder.valid <= begin).only_enforce_if(literal)
        if holder.present is not self._true:
            cp.add_implication(literal, holder.present)
        if holder.end is not None:
            cp.add(holder.end >= use.finish).only_enforce_if(literal)
            return
        if holder.residency is None:
            return
        extra = ExtraUse(literal, use.finish, was_until)
        self._extra_uses.setdefault(holder.residency, []).append(extra)
        new = window.overwritten_by[holder.residency]
        if new != NONE:
            first = self._begin(window.filler[new])
            cp.add(use.finish <= first).only_enforce_if(literal)
