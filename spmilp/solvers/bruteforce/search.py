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
from time import monotonic
from typing import TypeAlias

from spmilp.problem.objective import Quantity
from spmilp.solvers.bruteforce.clock import Clock
from spmilp.solvers.bruteforce.contents import Contents
from spmilp.solvers.bruteforce.demand import Demand
from spmilp.solvers.bruteforce.given import Given
from spmilp.solvers.bruteforce.move_starts import MoveStart, MoveStarts
from spmilp.solvers.bruteforce.passages import Passages
from spmilp.solvers.bruteforce.remaining import NOTHING, Cost, Remaining
from spmilp.solvers.bruteforce.room import Item, Room
from spmilp.solvers.bruteforce.state import DONE, WAITING, Node, Shelf, State, Stay, TaskState
from spmilp.solvers.bruteforce.task_starts import TaskStart, TaskStarts

Step: TypeAlias = TaskStart | MoveStart | None
"""What starts; ``None`` when time passes."""


class LimitReachedError(Exception):
    """The search was stopped; ``bound`` is what the first quantity of its order is at least."""

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
    deadline
        On the monotonic clock, in seconds; ``None`` for none.
    most_states
        To look at, over all searches.
    """

    deadline: float | None
    most_states: int
    states: int = 0

    def is_over(self) -> bool:
        """Count a state, and say whether it was one too many."""
        self.states += 1
        if self.states > self.most_states:
            return True
        return self.deadline is not None and monotonic() > self.deadline


class Search:
    """All plans of a problem that keep within some limits.

    Parameters
    ----------
    given
        With the peak of the scratchpads that a plan must not exceed.
    order
        Quantities to compare plans by, the first one first; ``peak_spm`` is none of them.
    ceilings
        Quantities that a plan must not exceed, none of them in ``order``.
    """

    def __init__(
        self,
        given: Given,
        order: Sequence[Quantity],
        ceilings: Mapping[Quantity, int],
        limits: Limits,
    ) -> None:
        self.given = given
        self._order = tuple(order)
        self._ceilings = dict(ceilings)
        self._limits = limits
        self._is_timed = Quantity.MAKESPAN in order or Quantity.MAKESPAN in ceilings
        memories = range(len(given.machine.memories))
        self.rooms = tuple(Room(given, memory) for memory in memories)
        self._passages = Passages(given)
        self._demand = Demand(given, self.rooms)
        self._tasks = TaskStarts(given, self.rooms)
        self._moves = MoveStarts(given, self.rooms, self._passages, self._demand)
        self._clock = Clock(given, self.rooms, self._demand)
        self._remaining = Remaining(given, self._passages, self._demand)
        self._known: dict[State, list[Cost]] = {}
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
        left = self._remaining.of(path.node.state)
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
        """Say whether one way to a state makes another one needless.

        What follows costs both the same, so the order of plans by it is theirs.
        """
        return self._rank(one) <= self._rank(other) and all(
            one.of(quantity) <= other.of(quantity) for quantity in self._ceilings
        )

    def _successors(self, path: Path) -> Iterator[tuple[Node, Cost, Step]]:
        """Yield what can follow; where cycles do not count, one thing ends before another starts.

        That loses nothing: let all that a plan starts run in the same order, but one after the
        other. Operands are valid sooner than before with respect to it, and whatever lies in a
        memory while something runs also lay there when that started in the plan.
        """
        cost = path.cost
        later = self._clock.after(path.node)
        if later is not None:
            node, cycles = later
            yield node, cost.plus(Cost(cycles, 0, 0)), None
        if not self._is_timed and self._is_busy(path.node.state):
            return
        for node, start in self._tasks.after(path.node):
            group = self.given.groups[start.group]
            yield node, cost.plus(Cost(0, 0, self.given.energy(start.task, group))), start
        for node, move in self._moves.after(path.node):
            passage = move.passage
            yield node, cost.plus(Cost(0, passage.traffic, passage.energy)), move

    def _is_busy(self, state: State) -> bool:
        return bool(state.moves) or any(task.left > 0 for task in state.tasks)

    def _is_complete(self, state: State) -> bool:
        if state.moves or any(task.left != DONE for task in state.tasks):
            return False
        return all(
            buffer.ends_in is None or self._demand.is_in(state, buffer.index, buffer.ends_in)
            for buffer in self.given.problem.buffers
        )

    def _roots(self) -> Iterator[Node]:
        """Yield what can be at cycle 0: residues of tensors and of what starts in a memory."""
        problem = self.given.problem
        choices = [self.given.residues[tensor.memory] for tensor in problem.tensors]
        tasks = (TaskState(WAITING, -1),) * len(problem.tasks)
        for anchors in product(*choices):
            shelves = tuple(
                Shelf((), room.first_layouts(self._anchors_in(memory, anchors)))
                for memory, room in enumerate(self.rooms)
            )
            node = Node(State(tasks, (), shelves, anchors), ((),) * len(shelves), 0)
            yield from self._with_originals(node)

    def _anchors_in(self, memory: int, anchors: Sequence[int]) -> list[int]:
        pairs = zip(self.given.problem.tensors, anchors, strict=True)
        return [anchor for tensor, anchor in pairs if tensor.memory == memory]

    def _with_originals(self, node: Node) -> Iterator[Node]:
        """Yield the node with all that is there at cycle 0 and wanted, in every way it can lie.

        Of a buffer at its place every slice counts as a stay of its own, so that one may end when
        something is written over it while others last.
        """
        nodes = [node]
        for memory in range(len(self.rooms)):
            originals = [
                part
                for part in self.given.problem.slices
                if self.given.problem.buffers[part.buffer].starts_in == memory
                and (part.index == part.buffer or self.given.home(part.index, memory) is not None)
                and self._demand.is_wanted(node.state, part.index, memory)
            ]
            for part in originals:
                placed = self.given.home(part.index, memory) is not None
                residues = (0,) if placed else self.given.residues[memory]
                nodes = [
                    after
                    for before in nodes
                    for residue in residues
                    for after in self._with_original(before, memory, part.index, residue, placed)
                ]
        for filled in nodes:
            if all(shelf.layouts is None or shelf.layouts for shelf in filled.state.shelves):
                yield filled

    def _with_original(
        self, node: Node, memory: int, slice_: int, residue: int, placed: bool
    ) -> Iterator[Node]:
        contents = Contents.of(node, memory)
        stay = Stay(slice_, residue, 0, 0, True, False)
        if placed:
            # Those at their places show what is there; they may share elements.
            columns = contents.layouts
            if columns is not None:
                columns = frozenset((*layout, -1) for layout in columns)
            ways = [Contents([*contents.stays, stay], [*contents.names, node.made], columns)]
        else:
            size = self.given.problem.slices[slice_].bytes
            held = [s._replace(used=False) for s in contents.stays]
            fixed = Contents(held, contents.names, contents.layouts)
            ways = [
                Contents([s._replace(used=True) for s in way.stays], way.names, way.layouts)
                for way in fixed.with_items(self.rooms[memory], [Item(stay, size)], [node.made])
            ]
        for way in ways:
            shelf, names = way.in_order(self.rooms[memory])
            shelves, all_names = list(node.state.shelves), list(node.names)
            shelves[memory], all_names[memory] = shelf, names
            yield Node(node.state._replace(shelves=tuple(shelves)), tuple(all_names), node.made + 1)
