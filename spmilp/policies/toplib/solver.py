"""The policy as a solver: what is promoted in each scratchpad, and the plan of it."""

from collections import defaultdict
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property

from spmilp.policies.one_after_another import NotTakenError
from spmilp.policies.onsram.pinned import PinnedPlans
from spmilp.policies.onsram.structure import Pins, Structure
from spmilp.policies.onsram.task_structures import TaskStructures
from spmilp.policies.toplib.liveness import live_ranges, loop_of
from spmilp.policies.toplib.partitions import Range, Remainder, coloured, height
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.units import MemoryIdx


class TopLib(Solver):
    """Keeps data in the part of each scratchpad that the partitions of its streams leave."""

    name = "toplib"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            plans = PinnedPlans(context, self.name)
            spaces = AddressSpaces(plans.structures)
            return plans.result(*plans.in_turn(spaces.by_saving, spaces.promoted))
        except NotTakenError as error:
            return context.unknown(str(error))


class Phase(IntEnum):
    """What a core does for a task, one after another; each is a point of its program."""

    LOADS = 0
    COMPUTATION = 1
    STORES = 2


class AddressSpaces:
    """The values of each scratchpad's program, and what is left beside their partitions."""

    def __init__(self, structures: TaskStructures) -> None:
        self._structures = structures
        self._of: dict[MemoryIdx, _Program] = {}
        steps: dict[MemoryIdx, list[int]] = defaultdict(list)
        for number, step in enumerate(structures.steps):
            steps[step.memory].append(number)
        for memory, numbers in steps.items():
            self._of[memory] = _Program(structures, memory, numbers)

    @cached_property
    def by_saving(self) -> tuple[int, ...]:
        """The structures of which a block of place saves most bytes, the best first."""
        return tuple(sorted((one.index for one in self._structures.all), key=self._worth))

    def promoted(self, order: Sequence[int]) -> Pins:
        """Return the structures that find room in what is left, in an order."""
        left = {memory: Remainder(program.left) for memory, program in self._of.items()}
        chosen = set()
        for index in order:
            one = self._structures.all[index]
            points = self._of[one.memory].ranges[index]
            if left[one.memory].takes(index, self._size(one), points):
                chosen.add(index)
        return frozenset(chosen)

    def _size(self, one: Structure) -> int:
        return self._structures.tables.blocks_of(one.buffer, one.memory)

    def _worth(self, index: int) -> tuple[float, int]:
        one = self._structures.all[index]
        return -one.saved_bytes / self._size(one), index


class _Program:
    """The tasks of one scratchpad's cores, over and over again.

    Attributes
    ----------
    ranges
        Of the structures of this scratchpad, by index: where they live if they are promoted.
    left
        Blocks beside the partitions of the streams, never fewer than 0; ``None`` without limit.
    """

    def __init__(
        self, structures: TaskStructures, memory: MemoryIdx, numbers: Sequence[int]
    ) -> None:
        self._structures = structures
        self._memory = memory
        self._numbers = numbers
        self.ranges = self._ranges()
        partitions = coloured(*self._streams())
        capacity = structures.tables.capacity[memory]
        self.left = None if capacity is None else max(0, capacity - height(partitions))

    def _ranges(self) -> dict[int, Range]:
        """Analyse the program in which all structures are promoted."""
        reads: dict[tuple[int, Phase], list[int]] = defaultdict(list)
        writes: dict[tuple[int, Phase], list[int]] = defaultdict(list)
        here = [one for one in self._structures.all if one.memory == self._memory]
        for value, one in enumerate(here):
            tables = self._structures.tables
            first, task = one.uses[0], tables.writers[one.buffer]
            is_written = task is not None and self._structures.steps[first].task == task
            writes[first, Phase.COMPUTATION if is_written else Phase.LOADS].append(value)
            for step in one.uses[is_written:]:
                reads[step, Phase.COMPUTATION].append(value)
            if is_written and one.buffer in self._structures.stored:
                reads[first, Phase.STORES].append(value)
        points = [(step, phase) for step in self._numbers for phase in Phase]
        found = live_ranges(loop_of(points), reads, writes, len(here))
        return {one.index: points for one, points in zip(here, found, strict=True)}

    def _streams(self) -> tuple[list[Range], list[int]]:
        """Return where all that tasks stream takes memory, and the blocks of each."""
        tables, ranges, sizes = self._structures.tables, list[Range](), list[int]()
        for number in self._numbers:
            step = self._structures.steps[number]
            task = tables.problem.tasks[step.task]
            loads, computation, stores = ((number, phase) for phase in Phase)
            values = [(one, (loads, computation)) for one in dict.fromkeys(step.holders)]
            values += [(one, (computation, stores)) for one in task.writes]
            ranges += [points for _, points in values]
            sizes += [tables.blocks_of(one, self._memory) for one, _ in values]
            if task.scratch:
                ranges.append((computation,))
                sizes.append(tables.blocks(task.scratch, self._memory))
        return ranges, sizes
