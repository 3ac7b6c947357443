"""Search through all states, the most promising one first (A*).

Hart, Nilsson, Raphael, "A formal basis for the heuristic determination of minimum cost paths", IEEE
Transactions on Systems Science and Cybernetics 4(2), 1968. A state's cost so far plus the bounds of
:mod:`.remaining` never exceeds the cost of a plan through it, quantity by quantity and so in the
order of their rank. The first complete plan that comes up is therefore one of the best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product
from typing import TypeAlias

from spmilp.problem.objective import Quantity
from spmilp.solvers.common.clock import Clock
from tests.oracle.advance import TimeAdvance
from tests.oracle.capacity import CapacityModel, Item
from tests.oracle.contents import Contents, Demand, combined
from tests.oracle.lower_bounds import NOTHING, Cost, LowerBounds
from tests.oracle.state import (
    DONE,
    WAITING,
    LiveResidency,
    MemoryState,
    Node,
    State,
    TaskState,
)
from tests.oracle.tables import ProblemTables
from tests.oracle.task_starts import TaskStart, TaskStarts
from tests.oracle.transfer_options import TransferOptions
from tests.oracle.transfer_starts import TransferStart, TransferStarts

Step: TypeAlias = TaskStart | TransferStart | None
"""The start of a task or transfer; ``None`` when time passes."""


class LimitReachedError(Exception):
    """The search was stopped; ``bound`` is a lower bound on the first quantity of its order."""

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self.bound = bound


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """How a state was reached: the last step, and the path before it."""

    node: Node
    cost: Cost
    step: Step
    before: "Path | None"


@dataclass(slots=True)
class Limits:
    """When to stop, and how far the search has come.

    Parameters
    ----------
    clock
        Time of the whole solve.
    most_states
        To look at, over all searches.
    """

    clock: Clock
    most_states: int
    states: int = 0

    def is_over(self) -> bool:
        """Count a state, and say whether it was one too many."""
        self.states += 1
        if self.states > self.most_states:
            return True
        return self.clock.is_over()


class Search:
    """All plans of a problem that keep within some limits.

    Parameters
    ----------
    tables
        With the peak of the scratchpads that a plan must not exceed.
    order
        Quantities to compare plans by, the first one first; ``peak_spm`` is none of them.
    ceilings
        Quantities that a plan must not exceed, none of them in ``order``.
    """

    def __init__(
        self,
        tables: ProblemTables,
        order: Sequence[Quantity],
        ceilings: Mapping[Quantity, int],
        limits: Limits,
    ) -> None:
        self.tables = tables
        self._order = tuple(order)
        self._ceilings = dict(ceilings)
        self._limits = limits
        self._is_timed = (
            Quantity.MAKESPAN in order or Quantity.MAKESPAN in ceilings or bool(tables.not_after)
        )
        memories = range(len(tables.machine.memories))
        self.models = tuple(CapacityModel(tables, memory) for memory in memories)
        self._options = TransferOptions(tables)
        self._demand = Demand(tables, self.models)
        self._tasks = TaskStarts(tables, self.models)
        self._transfers = TransferStarts(tables, self.models, self._options, self._demand)
        self._advance = TimeAdvance(tables, self.models, self._demand)
        self._lower_bounds = LowerBounds(tables, self._options, self._demand)
        self._known: dict[State, list[Cost]] = {}
        self._ends_count = bool(tables.not_after)
        self._heap: list[tuple[tuple[int, ...], int, Path]] = []
        self._pushed = 0

    def best_path(self) -> Path | None:
        """Return a path to a complete plan that no other one beats; ``None`` if there is none.

        Raises
        ------
        LimitReachedError
            If a limit comes first.
        """
        for node in self._roots():
            self._push(Path(node, NOTHING, None, None))
        while self._heap:
            promise, _, path = heappop(self._heap)
            if path.cost not in self._known[path.node.state]:
                continue
            if self._is_complete(path.node.state):
                return path
            if self._limits.is_over():
                raise LimitReachedError(promise[0] if self._order else 0)
            for node, cost, step in self._successors(path):
                self._push(Path(node, cost, step, path))
        return None

    def _rank(self, cost: Cost) -> tuple[int, ...]:
        """Return the quantities of the order."""
        return tuple(cost.of(quantity) for quantity in self._order)

    def _push(self, path: Path) -> None:
        known = self._known.setdefault(path.node.state, [])
        if any(self._is_as_good(other, path.cost) for other in known):
            return
        left = self._lower_bounds.of(path.node.state)
        if left is None:
            return
        total = path.cost.plus(left)
        if any(total.of(quantity) > most for quantity, most in self._ceilings.items()):
            return
        known[:] = [other for other in known if not self._is_as_good(path.cost, other)]
        known.append(path.cost)
        self._pushed += 1
        promise = (*self._rank(total), total.makespan, left.makespan)
        heappush(self._heap, (promise, -self._pushed, path))

    def _is_as_good(self, one: Cost, other: Cost) -> bool:
        """Say whether a state reached at one cost need not be reached at another one.

        The cost of all that follows is the same; with cycles by which tasks must have ended, it is
        so for the one that comes no later.
        """
        if self._ends_count and one.makespan > other.makespan:
            return False
        return self._rank(one) <= self._rank(other) and all(
            one.of(quantity) <= other.of(quantity) for quantity in self._ceilings
        )

    def _successors(self, path: Path) -> Iterator[tuple[Node, Cost, Step]]:
        """Yield the successors; where cycles do not count, one thing ends before another starts.

        That loses nothing: let all that a plan starts run in the same order, but one after the
        other. Operands are valid sooner than before with respect to it, and whatever lies in a
        memory while something runs also lay there when that started in the plan.
        """
        cost = path.cost
        later = self._advance.after(path.node)
        if later is not None:
            node, cycles = later
            yield node, cost.plus(Cost(cycles, 0, 0)), None
        if not self._is_timed and self._is_busy(path.node.state):
            return
        for node, start in self._tasks.after(path.node):
            end = cost.makespan + start.cycles
            if end > self.tables.not_after.get(start.task, end):
                continue
            group = self.tables.groups[start.group]
            yield node, cost.plus(Cost(0, 0, self.tables.energy(start.task, group))), start
        for node, transfer in self._transfers.after(path.node):
            option = transfer.option
            yield node, cost.plus(Cost(0, option.traffic, option.energy)), transfer

    def _is_busy(self, state: State) -> bool:
        return bool(state.transfers) or any(task.left > 0 for task in state.tasks)

    def _is_complete(self, state: State) -> bool:
        if state.transfers or any(task.left != DONE for task in state.tasks):
            return False
        return all(
            buffer.ends_in is None or self._demand.is_in(state, buffer.index, buffer.ends_in)
            for buffer in self.tables.problem.buffers
        )

    def _roots(self) -> Iterator[Node]:
        """Yield the nodes at cycle 0: all residues of tensors and layouts of initial data."""
        problem = self.tables.problem
        choices = [self.tables.residues[tensor.memory] for tensor in problem.tensors]
        tasks = (TaskState(WAITING, -1),) * len(problem.tasks)
        for tensor_residues in product(*choices):
            memories = tuple(
                MemoryState((), model.first_layouts(self._residues_in(memory, tensor_residues)))
                for memory, model in enumerate(self.models)
            )
            node = Node(State(tasks, (), memories, tensor_residues), ((),) * len(memories), 0)
            yield from self._with_originals(node)

    def _residues_in(self, memory: int, tensor_residues: Sequence[int]) -> list[int]:
        pairs = zip(self.tables.problem.tensors, tensor_residues, strict=True)
        return [residue for tensor, residue in pairs if tensor.memory == memory]

    def _with_originals(self, node: Node) -> Iterator[Node]:
        """Yield the node with all initial data that is wanted, in every layout.

        Of a buffer at its place every slice is a residency of its own, so that one may end when
        something is written over it while others last.
        """
        nodes = [node]
        for memory in range(len(self.models)):
            originals = [
                part
                for part in self.tables.problem.slices
                if self.tables.problem.buffers[part.buffer].starts_in == memory
                and (part.index == part.buffer or self.tables.home(part.index, memory) is not None)
                and self._demand.is_wanted(node.state, part.index, memory)
            ]
            for part in originals:
                placed = self.tables.home(part.index, memory) is not None
                residues = (0,) if placed else self.tables.residues[memory]
                nodes = [
                    after
                    for before in nodes
                    for residue in residues
                    for after in self._with_original(before, memory, part.index, residue, placed)
                ]
        for filled in nodes:
            if all(
                memory_state.layouts is None or memory_state.layouts
                for memory_state in filled.state.memories
            ):
                yield filled

    def _with_original(
        self, node: Node, memory: int, slice_: int, residue: int, placed: bool
    ) -> Iterator[Node]:
        contents = Contents.of(node, memory)
        residency = LiveResidency(slice_, residue, 0, 0, True, False)
        if placed:
            # Slices at their places hold the same initial data; they may share elements.
            layouts = contents.layouts
            if layouts is not None:
                layouts = frozenset((*layout, -1) for layout in layouts)
            names = [*contents.names, node.next_name]
            filled = [Contents([*contents.residencies, residency], names, layouts)]
        else:
            size = self.tables.problem.slices[slice_].bytes
            held = [s._replace(used=False) for s in contents.residencies]
            fixed = Contents(held, contents.names, contents.layouts)
            filled = [
                Contents([s._replace(used=True) for s in one.residencies], one.names, one.layouts)
                for one in fixed.with_items(
                    self.models[memory], [Item(residency, size)], [node.next_name]
                )
            ]
        for memories, all_names in combined(node, {memory: filled}, self.models):
            state = node.state._replace(memories=memories)
            yield Node(state, all_names, node.next_name + 1)
