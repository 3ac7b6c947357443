"""Successors of a state: time passes until the next task or transfer ends."""

from collections.abc import Sequence

from spmilp.units import Cycles, MemoryIdx
from tests.oracle.capacity import CapacityModel
from tests.oracle.contents import Contents, Demand
from tests.oracle.state import WAITING, LiveResidency, Node, State, TaskState
from tests.oracle.tables import ProblemTables


class TimeAdvance:
    """Advances states, and drops residencies that no plan worth finding keeps."""

    def __init__(
        self, tables: ProblemTables, models: Sequence[CapacityModel], demand: Demand
    ) -> None:
        self._tables = tables
        self._models = models
        self._demand = demand

    def after(self, node: Node) -> tuple[Node, Cycles] | None:
        """Return the node at the next end, and the cycles until then.

        ``None`` if nothing runs, or if a transfer turns out to be redundant: the plan
        without it is found as well.
        """
        ends = [task.left for task in node.state.tasks if task.left > 0]
        ends += [transfer.left for transfer in node.state.transfers]
        if not ends:
            return None
        cycles = min(ends)
        state = _later(node.state, cycles)
        memories, names = list(state.memories), list(node.names)
        for memory in range(len(memories)):
            kept = self._kept(state, node, memory, cycles)
            if kept is None:
                return None
            memories[memory], names[memory] = kept.in_order(self._models[memory])
        return Node(state._replace(memories=tuple(memories)), tuple(names), node.next_name), cycles

    def _kept(self, state: State, node: Node, memory: MemoryIdx, cycles: Cycles) -> Contents | None:
        """Return a memory's contents later on; ``None`` if a transfer was redundant."""
        contents = Contents.of(node, memory)
        before = contents.residencies
        residencies = [_residency_later(residency, cycles) for residency in before]
        self._newer_copies_replace_older(state, before, residencies)
        gone = set()
        for position, residency in enumerate(residencies):
            is_over = residency.leaving and residency.busy_for == 0
            wanted = residency.slice < 0 or self._demand.is_wanted(state, residency.slice, memory)
            if not wanted and not residency.used:
                return None
            if is_over or (not wanted and residency.busy_for == 0):
                if not residency.used:
                    return None
                gone.add(position)
        later = Contents(residencies, contents.names, contents.layouts)
        return later.without(gone, self._models[memory])

    def _newer_copies_replace_older(
        self, state: State, before: Sequence[LiveResidency], residencies: list[LiveResidency]
    ) -> None:
        """Let older copies of a slice that has just become valid serve nothing else.

        Of two valid copies of a slice in one memory, the one that lasts longer can serve whatever
        the other one would serve from now on. If the older one lasts longer the transfer of the
        newer one is of no use. Only where a task may write in place of one copy are both of use.
        """
        for new, residency in enumerate(residencies):
            if residency.valid_in > 0 or before[new].valid_in == 0 or residency.slice < 0:
                continue
            writers = self._tables.overwriters[residency.slice]
            if any(state.tasks[task].left == WAITING for task in writers):
                continue
            for old, other in enumerate(residencies):
                if old != new and other.slice == residency.slice and other.valid_in == 0:
                    residencies[old] = other._replace(leaving=True)


def _later(state: State, cycles: Cycles) -> State:
    tasks = tuple(
        TaskState(task.left - cycles, task.group if task.left > cycles else -1)
        if task.left > 0
        else task
        for task in state.tasks
    )
    transfers = tuple(
        transfer._replace(left=transfer.left - cycles)
        for transfer in state.transfers
        if transfer.left > cycles
    )
    return state._replace(tasks=tasks, transfers=transfers)


def _residency_later(residency: LiveResidency, cycles: Cycles) -> LiveResidency:
    if residency.busy_for == 0:
        return residency
    return residency._replace(
        valid_in=max(0, residency.valid_in - cycles), busy_for=max(0, residency.busy_for - cycles)
    )
