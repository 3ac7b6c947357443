"""Who may lie in a memory at which step."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.variables import Spot, Takeover, Variables
from spmilp.solvers.residency.visits import Home
from spmilp.units import MemoryIdx, TaskIdx


@dataclass(frozen=True, slots=True)
class Tenant:
    """A slice that lies in a memory at a step if its literal says so.

    Parameters
    ----------
    spot
        Where its offset was chosen: at this visit, or at the one before.
    """

    home: Home
    spot: Spot
    literal: cp_model.IntVar


@dataclass(slots=True)
class Crowd:
    """All that may lie in a memory at a step.

    Parameters
    ----------
    task
        The one that runs in this memory at this step, if any.
    takeovers
        Those of that task.
    """

    memory: MemoryIdx
    step: int
    task: TaskIdx | None = None
    tenants: list[Tenant] = field(default_factory=list)
    takeovers: list[tuple[Takeover, cp_model.IntVar]] = field(default_factory=list)


class Room:
    """The crowds of every memory on the chip, at each step at which something visits it.

    At any other step nothing lies in the memory that does not lie there at the next of these.
    """

    def __init__(self, tables: Tables, course: Course, variables: Variables) -> None:
        self._tables = tables
        self.memories = tuple(
            memory.index for memory in tables.machine.memories if memory.kind is not MemoryKind.DRAM
        )
        self._crowds: dict[MemoryIdx, dict[int, Crowd]] = defaultdict(dict)
        for step, (task, memory) in enumerate(
            (task, course.memories(tables)[task]) for task in course.order
        ):
            self._crowds[memory][step] = Crowd(memory, step, task)
        for home, spots in variables.spots.items():
            here = self._crowds[home.memory]
            for spot in spots:
                here.setdefault(spot.visit.step, Crowd(home.memory, spot.visit.step))
        steps = {memory: sorted(crowds) for memory, crowds in self._crowds.items()}
        for home, spots in variables.spots.items():
            self._house(home, spots, steps[home.memory])
        for pair, literal in variables.takeovers.items():
            crowd = self._crowds[pair.old.memory][course.steps[pair.task]]
            crowd.takeovers.append((pair, literal))

    def crowds(self) -> list[Crowd]:
        """Return all of them, memory by memory, in order of steps."""
        return [
            crowds[step] for _, crowds in sorted(self._crowds.items()) for step in sorted(crowds)
        ]

    def blocks(self, home: Home) -> int:
        """Return the blocks that a slice takes."""
        size = self._tables.problem.slices[home.slice].bytes
        return self._tables.blocks(size, home.memory)

    def scratch(self, crowd: Crowd) -> int:
        """Return the blocks of scratch of the task that runs."""
        if crowd.task is None:
            return 0
        return self._tables.blocks(self._tables.problem.tasks[crowd.task].scratch, crowd.memory)

    def _house(self, home: Home, spots: list[Spot], steps: list[int]) -> None:
        here = self._crowds[home.memory]
        for spot, following in zip(spots, [*spots[1:], None], strict=True):
            here[spot.visit.step].tenants.append(Tenant(home, spot, spot.there))
            if following is None or spot.stays is None:
                continue
            first = bisect_right(steps, spot.visit.step)
            last = bisect_right(steps, following.visit.step - 1)
            for step in steps[first:last]:
                here[step].tenants.append(Tenant(home, spot, spot.stays))
