"""Time passes until the next task or transfer ends."""

from collections.abc import Sequence

from spmilp.solvers.bruteforce.contents import Contents
from spmilp.solvers.bruteforce.demand import Demand
from spmilp.solvers.bruteforce.given import Given
from spmilp.solvers.bruteforce.room import Room
from spmilp.solvers.bruteforce.state import WAITING, Node, State, Stay, TaskState, without
from spmilp.units import Cycles, MemoryIdx


class Clock:
    """Advances states and clears away what no plan worth finding keeps."""

    def __init__(self, given: Given, rooms: Sequence[Room], demand: Demand) -> None:
        self._given = given
        self._rooms = rooms
        self._demand = demand

    def after(self, node: Node) -> tuple[Node, Cycles] | None:
        """Return what follows at the next end, and in how many cycles.

        ``None`` if nothing runs, or if a transfer turns out to have been of no use: the plan
        without it is found as well.
        """
        ends = [task.left for task in node.state.tasks if task.left > 0]
        ends += [move.left for move in node.state.moves]
        if not ends:
            return None
        cycles = min(ends)
        state = _later(node.state, cycles)
        shelves, names = list(state.shelves), list(node.names)
        for memory in range(len(shelves)):
            kept = self._kept(state, node, memory, cycles)
            if kept is None:
                return None
            shelves[memory], names[memory] = kept.in_order(self._rooms[memory])
        return Node(state._replace(shelves=tuple(shelves)), tuple(names), node.made), cycles

    def _kept(self, state: State, node: Node, memory: MemoryIdx, cycles: Cycles) -> Contents | None:
        """Return a memory's contents later on; ``None`` if a transfer was in vain."""
        contents = Contents.of(node, memory)
        before = contents.stays
        stays = [_stay_later(stay, cycles) for stay in before]
        self._newer_copies_replace_older(state, before, stays)
        gone = set()
        for position, stay in enumerate(stays):
            is_over = stay.leaving and stay.busy_for == 0
            wanted = stay.slice < 0 or self._demand.is_wanted(state, stay.slice, memory)
            if not wanted and not stay.used:
                return None
            if is_over or (not wanted and stay.busy_for == 0):
                if not stay.used:
                    return None
                gone.add(position)
        tensors = self._rooms[memory].tensors
        return Contents(
            [stay for position, stay in enumerate(stays) if position not in gone],
            [name for position, name in enumerate(contents.names) if position not in gone],
            without(contents.layouts, {tensors + position for position in gone}),
        )

    def _newer_copies_replace_older(
        self, state: State, before: Sequence[Stay], stays: list[Stay]
    ) -> None:
        """Let older copies of what has just become valid serve nothing else.

        Of two valid copies of a slice in one memory, the one that lasts longer can serve whatever
        the other one would serve from now on. If the older one lasts longer the transfer of the
        newer one is of no use. Only where a task may write in place of one copy are both of use.
        """
        for new, stay in enumerate(stays):
            if stay.valid_in > 0 or before[new].valid_in == 0 or stay.slice < 0:
                continue
            writers = self._given.overwriters[stay.slice]
            if any(state.tasks[task].left == WAITING for task in writers):
                continue
            for old, other in enumerate(stays):
                if old != new and other.slice == stay.slice and other.valid_in == 0:
                    stays[old] = other._replace(leaving=True)


def _later(state: State, cycles: Cycles) -> State:
    tasks = tuple(
        TaskState(task.left - cycles, task.group if task.left > cycles else -1)
        if task.left > 0
        else task
        for task in state.tasks
    )
    moves = tuple(
        move._replace(left=move.left - cycles) for move in state.moves if move.left > cycles
    )
    return state._replace(tasks=tasks, moves=moves)


def _stay_later(stay: Stay, cycles: Cycles) -> Stay:
    if stay.busy_for == 0:
        return stay
    return stay._replace(
        valid_in=max(0, stay.valid_in - cycles), busy_for=max(0, stay.busy_for - cycles)
    )
