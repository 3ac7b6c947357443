"""A plan as activities: tasks and transfers under one numbering, with their times."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import lcm

from spmilp.commands.order import Activities, Activity, Before, activities_of, predecessors
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, Cycles, LinkIdx, ResidencyIdx


class Part(StrEnum):
    """What is done in a cycle of the critical chain; ``UNUSED``: it need not have passed."""

    COMPUTE = "compute"
    LOAD = "load"
    STORE = "store"
    MOVE = "move"
    UNUSED = "unused"


@dataclass(frozen=True, kw_only=True, eq=False)
class AnalysedPlan:
    """A valid plan and its problem; what several analyses need is found once."""

    problem: Problem
    plan: Plan

    @cached_property
    def activities(self) -> Activities:
        """Tasks and transfers in the lists of their cores and channels."""
        return activities_of(self.problem, self.plan)

    @cached_property
    def before(self) -> Before:
        """For each activity, others that must have ended before it starts."""
        return predecessors(self.problem, self.plan, self.activities)

    @cached_property
    def starts(self) -> tuple[Cycles, ...]:
        """The start of each activity."""
        of_tasks = [placement.start for placement in self.plan.placements]
        return (*of_tasks, *[move.start for move in self.plan.transfers])

    @cached_property
    def ends(self) -> tuple[Cycles, ...]:
        """The end of each activity."""
        of_tasks = [placement.end for placement in self.plan.placements]
        return (*of_tasks, *[move.end for move in self.plan.transfers])

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What each activity does."""
        moves = [self._direction(move) for move in self.plan.transfers]
        return (*[Part.COMPUTE] * len(self.plan.placements), *moves)

    @cached_property
    def rate_unit(self) -> int:
        """Parts of a byte per cycle in which the rates of all links and engines are integers."""
        machine = self.problem.machine
        rates = [link.rate for link in machine.links] + [engine.rate for engine in machine.engines]
        return lcm(*(rate.denominator for rate in rates))

    @cached_property
    def link_rates(self) -> tuple[int, ...]:
        """The rate of each link in ``rate_unit``."""
        return tuple(int(link.rate * self.rate_unit) for link in self.problem.machine.links)

    @cached_property
    def held_rates(self) -> tuple[int, ...]:
        """What each transfer holds of each link of its route, in ``rate_unit``."""
        engines = [int(each.rate * self.rate_unit) for each in self.problem.machine.engines]
        links = self.link_rates
        return tuple(
            min([engines[move.engine], *(links[link] for link in move.route)])
            for move in self.plan.transfers
        )

    def transfer(self, activity: Activity) -> Transfer | None:
        """Return the transfer that an activity is; ``None`` for a task."""
        behind = activity - len(self.plan.placements)
        return None if behind < 0 else self.plan.transfers[behind]

    def reads(self, activity: Activity) -> tuple[ResidencyIdx, ...]:
        """Return the residencies that an activity reads."""
        move = self.transfer(activity)
        return self.plan.placements[activity].reads if move is None else (move.source,)

    def writes(self, activity: Activity) -> tuple[ResidencyIdx, ...]:
        """Return the residencies that an activity writes, scratch included."""
        move = self.transfer(activity)
        if move is not None:
            return move.destinations
        placement = self.plan.placements[activity]
        scratch = () if placement.scratch is None else (placement.scratch,)
        return (*placement.writes, *scratch)

    def filler(self, residency: ResidencyIdx) -> Activity | None:
        """Return the activity that fills a residency, if any does."""
        filled = self.plan.residencies[residency]
        if filled.filled_by_transfer is not None:
            return len(self.plan.placements) + filled.filled_by_transfer
        return filled.filled_by_task

    def links(self, activity: Activity) -> tuple[LinkIdx, ...]:
        """Return the links that an activity holds."""
        move = self.transfer(activity)
        return () if move is None else move.route

    def is_dram(self, residency: ResidencyIdx) -> bool:
        """Say whether a residency lies in a DRAM."""
        memory = self.plan.residencies[residency].memory
        return self.problem.machine.memories[memory].kind is MemoryKind.DRAM

    def _direction(self, move: Transfer) -> Part:
        if self.is_dram(move.source):
            return Part.LOAD
        return Part.STORE if any(map(self.is_dram, move.destinations)) else Part.MOVE


def tensor_name(subject: AnalysedPlan, buffer: BufferIdx) -> str:
    """Return the name of the tensor that a buffer is a part of, or its own."""
    each = subject.problem.buffers[buffer]
    if each.place is not None:
        return subject.problem.tensors[each.place.tensor].name
    return each.name if each.tile is None else each.tile.of
