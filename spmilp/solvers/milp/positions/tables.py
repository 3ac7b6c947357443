"""What a model by positions needs of a problem: one core, its scratchpad, and all else outside."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import BufferIdx, Cycles, EngineIdx, LinkIdx, SliceIdx, TaskIdx

MOST_TASKS = 16
"""Of more tasks there are too many orders."""

MOST_CELLS = 1500
"""Tasks times slices up to which the program of an order is built and solved within seconds."""


@dataclass(frozen=True, slots=True)
class Way:
    """What every transfer of a slice in one direction takes, whichever engine moves it.

    Parameters
    ----------
    least, most
        Cycles of the fastest and of the slowest.
    rates
        Bytes per cycle that each of them holds at least, on the links that all of them hold.
    engines
        Those that may move it.
    """

    least: Cycles
    most: Cycles
    rates: tuple[tuple[LinkIdx, Fraction], ...]
    engines: frozenset[EngineIdx]


def is_for_positions(problem: Problem) -> bool:
    """Say whether a model by positions is about a problem: one core, and the makespan.

    A transfer with several destinations may be slower than all others; so nothing is said of
    machines where there are any.
    """
    machine = problem.machine
    if problem.objective.first is not Quantity.MAKESPAN or len(machine.cores) != 1:
        return False
    casts = len(machine.memories) > 2 and any(engine.multicast for engine in machine.engines)
    home = machine.memories[machine.cores[0].memory]
    is_remote = machine.remote is not None and len(machine.spms) > 1
    able = all(task.cycles[machine.cores[0].kind] is not None for task in problem.tasks)
    tasks = len(problem.tasks)
    is_small = 0 < tasks <= MOST_TASKS and tasks * len(problem.slices) <= MOST_CELLS
    return is_small and able and home.kind is MemoryKind.SPM and not casts and not is_remote


def number_of_orders(problem: Problem, most: int) -> int:
    """Return in how many orders tasks can run one after another, or ``most`` if there are more."""
    before = [frozenset(some) for some in problem.predecessors()]
    ways: dict[frozenset[TaskIdx], int] = {frozenset(): 1}
    for _ in before:
        longer: dict[frozenset[TaskIdx], int] = defaultdict(int)
        for done, count in ways.items():
            for task, some in enumerate(before):
                if task not in done and some <= done:
                    longer[done | {task}] += count
        ways = longer
        if sum(ways.values()) >= most:
            # Each of these goes on in one way or more.
            return most
    return sum(ways.values())


class PositionTables:
    """Lookups of a problem for which :func:`is_for_positions` holds.

    Attributes
    ----------
    memory, capacity
        The core's scratchpad, and its blocks.
    size
        Of each slice in blocks.
    fits
        The slices that may lie in the scratchpad and are of use there: those that tasks read or
        write, and buffers of which they read parts.
    into, out, within
        How a slice gets in from anywhere outside, how it gets out, and how it is copied from its
        buffer inside.
    writer
        The task that writes each buffer; ``None`` for what is there at cycle 0.
    stored
        Buffers that some task writes, or that are inside at first, and that must end outside.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.base = ProblemTables(problem)
        core = problem.machine.cores[0]
        self.memory = core.memory
        self.cycles = tuple(task.cycles[core.kind] or 0 for task in problem.tasks)
        self.before = self.base.predecessors
        self.capacity = self.base.capacity[self.memory] or 0
        self.writer = self.base.writers
        wanted = {read for task in problem.tasks for read in task.reads}
        wanted |= {buffer for task in problem.tasks for buffer in task.writes}
        wanted |= {self.buffer(slice_) for slice_ in wanted}
        self.fits = tuple(s for s in sorted(wanted) if self.base.fits(s, self.memory))
        self.size = {s: self.base.blocks_of(s, self.memory) for s in self.fits}
        outside = [m.index for m in problem.machine.memories if m.index != self.memory]
        self.into = self._ways((other, self.memory) for other in outside)
        self.out = self._ways((self.memory, other) for other in outside)
        self.within = self._ways([(self.memory, self.memory)])
        self.stored = tuple(b.index for b in problem.buffers if self._must_leave(b.index))

    def buffer(self, slice_: SliceIdx) -> BufferIdx:
        """Return the buffer of a slice."""
        return self.problem.slices[slice_].buffer

    def is_outside_at_first(self, buffer: BufferIdx) -> bool:
        """Say whether a buffer lies outside the core's scratchpad at cycle 0."""
        return self.problem.buffers[buffer].starts_in not in (None, self.memory)

    def stored_by(self, task: TaskIdx) -> list[BufferIdx]:
        """Return what a task writes and must end outside."""
        return [buffer for buffer in self.problem.tasks[task].writes if buffer in self.stored]

    def own_blocks(self, task: TaskIdx) -> int:
        """Return the blocks of a task's results and scratch."""
        wanted = self.problem.tasks[task]
        scratch = self.base.blocks(wanted.scratch, self.memory)
        return scratch + sum(self.base.blocks_of(b, self.memory) for b in wanted.writes)

    def _must_leave(self, buffer: BufferIdx) -> bool:
        ends, starts = self.problem.buffers[buffer].ends_in, self.problem.buffers[buffer].starts_in
        return ends is not None and ends != self.memory and starts in (None, self.memory)

    def _ways(self, ends: Iterable[tuple[int, int]]) -> dict[SliceIdx, Way]:
        found: dict[SliceIdx, Way] = {}
        pairs = tuple(ends)
        for slice_ in self.fits:
            options = [o for pair in pairs for o in self.base.transfers.between(slice_, *pair)]
            if options:
                found[slice_] = _way(options)
        return found


def _way(options: list[TransferOption]) -> Way:
    links = set(options[0].links).intersection(*(option.links for option in options))
    slowest = min(option.rate for option in options)
    return Way(
        least=min(option.cycles for option in options),
        most=max(option.cycles for option in options),
        rates=tuple((link, slowest) for link in sorted(links)),
        engines=frozenset(option.engine for option in options),
    )
