"""What CP-SAT has decided in a joint window, as a schedule."""

import numpy as np
from ortools.sat.python import cp_model

from spmilp.solvers.kernels.records import NONE, inverted
from spmilp.solvers.lns.joint.holders import Delivery, Holder
from spmilp.solvers.lns.joint.model import JointModel
from spmilp.solvers.lns.reassignment.edit import ScheduleEdit
from spmilp.solvers.partial_order.schedule import TimedSchedule, timed
from spmilp.units import ResidencyIdx


class JointResult:
    """Writes the decisions of a solved model into a schedule."""

    def __init__(self, model: JointModel, solver: cp_model.CpSolver) -> None:
        self._model = model
        self._solver = solver
        self._region = model.region
        self._new: dict[Holder, ResidencyIdx] = {}
        self._edit = ScheduleEdit(self._region.schedule, self._region.reassigner.first_free_slot)

    def schedule(self) -> TimedSchedule | None:
        """Return the schedule with its times; ``None`` where there are too few free slots."""
        region, rest, value = self._region, self._region.rest, self._solver.value
        old = np.array(rest.old, np.int64)
        start = np.where(rest.is_before, old, old - value(self._model.saved))
        for act, variable in self._model.starts.items():
            start[act] = rest.start + value(variable)
        self._nothing_free_is_overwritten()
        self._place_tasks()
        there = [one for one in self._model.deliveries if value(one.holder.present)]
        for one in self._model.deliveries:
            if one.transfer is not None and one not in there:
                self._edit.drop(one.transfer)
        for one in sorted(there, key=lambda one: value(one.start)):
            transfer = self._delivered(one)
            if transfer is None:
                return None
            start[transfer] = rest.start + value(one.start)
        self._serve_reads()
        for new, holder, literal in self._model.in_place:
            if value(literal):
                self._edit.overwrite(self._residency(holder), new)
        found = self._edit.result()
        readers = inverted(found.reads, region.schedule.filler.size)
        return timed(found._replace(readers=readers), start)

    def _residency(self, holder: Holder) -> ResidencyIdx:
        return self._new[holder] if holder.residency is None else holder.residency

    def _nothing_free_is_overwritten(self) -> None:
        """As nothing free overwrites anything: what does is decided anew."""
        for one in sorted(self._region.free):
            self._edit.forbid_in_place(one)
            old = int(self._region.schedule.overwrites[one])
            if old != NONE:
                self._edit.forbid_in_place(old)

    def _place_tasks(self) -> None:
        schedule = self._region.schedule
        for task, pools in self._model.pools.items():
            (pool,) = (pool for pool, literal in pools.items() if self._solver.value(literal))
            self._edit.run(task, pool, int(schedule.cycles[task]))
            for one in schedule.fills.values(task):
                self._edit.memory[one] = self._region.reassigner.pools[pool][1]

    def _delivered(self, one: Delivery) -> int | None:
        """Return the transfer of a delivery; ``None`` without a free slot."""
        transfer, holder = one.transfer, one.holder
        (taken,) = (source for source in one.sources if self._solver.value(source.literal))
        source = self._residency(taken.holder)
        if transfer is not None:
            self._edit.send(transfer, taken.option)
            self._edit.reads[transfer] = [source]
            return transfer
        what = self._region.problem.slices[holder.what]
        copied = self._edit.copy(what, source, holder.memory, taken.option)
        if copied is None:
            return None
        transfer, self._new[holder] = copied
        return transfer

    def _serve_reads(self) -> None:
        tasks = self._region.problem.tasks
        for (act, what), servers in self._model.serves.items():
            (holder,) = (holder for holder, literal in servers if self._solver.value(literal))
            reads = self._edit.reads[act]
            position = tasks[act].reads.index(what) if act < len(tasks) else 0
            reads[position] = self._residency(holder)
            self._edit.reads[act] = reads
