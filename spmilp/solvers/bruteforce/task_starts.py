"""The ways to start a task now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from spmilp.problem.problem import Task
from spmilp.solvers.bruteforce.contents import Contents, combined
from spmilp.solvers.bruteforce.given import CoreGroup, Given
from spmilp.solvers.bruteforce.room import Item, Room
from spmilp.solvers.bruteforce.state import DONE, WAITING, Node, State, Stay, TaskState
from spmilp.units import Cycles, MemoryIdx, TaskIdx


@dataclass(frozen=True, slots=True)
class TaskStart:
    """A task starts: on a core of a group, with named stays for what it reads and writes.

    Parameters
    ----------
    over
        ``(old, new)``: the stays of pairs in place.
    """

    task: TaskIdx
    group: int
    cycles: Cycles
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: int | None
    over: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Operand:
    """A stay that can serve a read."""

    memory: MemoryIdx
    position: int
    extra: Cycles


class TaskStarts:
    """Every task that could start, on every group of cores, from every stay, in place or not."""

    def __init__(self, given: Given, rooms: Sequence[Room]) -> None:
        self._given = given
        self._rooms = rooms

    def after(self, node: Node) -> Iterator[tuple[Node, TaskStart]]:
        """Yield what follows when one task starts."""
        state = node.state
        busy = [0] * len(self._given.groups)
        for task_state in state.tasks:
            if task_state.left > 0:
                busy[task_state.group] += 1
        for task in self._given.problem.tasks:
            if not self._is_ready(state, task.index):
                continue
            for index, group in enumerate(self._given.groups):
                cycles = self._given.cycles(task.index, group)
                if cycles is not None and busy[index] < len(group.cores):
                    yield from self._on(node, task, index, cycles)

    def _is_ready(self, state: State, task: TaskIdx) -> bool:
        before = self._given.predecessors[task]
        return state.tasks[task].left == WAITING and all(
            state.tasks[earlier].left == DONE for earlier in before
        )

    def _on(
        self, node: Node, task: Task, index: int, cycles: Cycles
    ) -> Iterator[tuple[Node, TaskStart]]:
        group = self._given.groups[index]
        operands = [self._operands(node.state, group, read) for read in task.reads]
        residues = self._given.residues[group.memory]
        for served in product(*operands):
            lasts = cycles + sum(operand.extra for operand in served)
            for over in self._in_place(node.state, task, group, served):
                for chosen in product(residues, repeat=len(task.writes)):
                    yield from self._started(node, task, index, lasts, served, over, chosen)

    def _operands(self, state: State, group: CoreGroup, read: int) -> list[_Operand]:
        """Return the stays that can serve a read; one in a spacious memory of its own will do."""
        found = []
        for memory, links in zip(group.readable, group.links, strict=True):
            for position, stay in enumerate(state.shelves[memory].stays):
                holds = stay.slice in (read, self._given.whole[read])
                if holds and stay.valid_in == 0 and not stay.leaving:
                    operand = _Operand(memory, position, self._given.remote_cycles(read, links))
                    if memory == group.memory and self._rooms[memory].is_spacious:
                        return [operand]
                    found.append(operand)
        return found

    def _in_place(
        self, state: State, task: Task, group: CoreGroup, served: Sequence[_Operand]
    ) -> Iterator[dict[int, int]]:
        """Yield the choices of pairs in place: positions of old stays by the buffer written.

        The old stay is of exactly the slice, in the core's memory, serves no other read of the
        task, and nothing else reads it any more. In a spacious memory there is nothing to gain.
        """
        yield {}
        if self._rooms[group.memory].is_spacious:
            return
        at = {(o.memory, o.position) for o in served}
        if len(at) < len(served):
            counted = [(o.memory, o.position) for o in served]
            at = {where for where in at if counted.count(where) == 1}
        possible = []
        for read, written in task.in_place:
            operand = served[task.reads.index(read)]
            stay = state.shelves[operand.memory].stays[operand.position]
            if (
                (operand.memory, operand.position) in at
                and operand.memory == group.memory
                and stay.slice == read
                and stay.busy_for == 0
                and self._given.home(read, group.memory) is None
                and self._given.home(written, group.memory) is None
            ):
                possible.append((written, operand.position))
        for choice in product((False, True), repeat=len(possible)):
            pairs = [pair for pair, wanted in zip(possible, choice, strict=True) if wanted]
            over = dict(pairs)
            if pairs and len(over) == len(pairs) == len(set(over.values())):
                yield over

    def _started(
        self,
        node: Node,
        task: Task,
        index: int,
        lasts: Cycles,
        served: Sequence[_Operand],
        over: dict[int, int],
        residues: Sequence[int],
    ) -> Iterator[tuple[Node, TaskStart]]:
        group = self._given.groups[index]
        contents = {
            memory: Contents.of(node, memory)
            for memory in {group.memory, *(operand.memory for operand in served)}
        }
        local = contents[group.memory]
        for operand in served:
            leaves = operand.memory == group.memory and operand.position in over.values()
            contents[operand.memory].use(operand.position, lasts, leaves)
        items = [
            self._item_written(group.memory, buffer, lasts, residue, over, local)
            for buffer, residue in zip(task.writes, residues, strict=True)
        ]
        needs_scratch = task.scratch > 0
        if needs_scratch:
            scratch = Stay(-1 - task.index, -1, 0, lasts, True, True)
            items.append(Item(scratch, task.scratch))
        names = range(node.made, node.made + len(items))
        start = TaskStart(
            task=task.index,
            group=index,
            cycles=lasts,
            reads=tuple(node.names[o.memory][o.position] for o in served),
            writes=tuple(names[: len(task.writes)]),
            scratch=names[-1] if needs_scratch else None,
            over=tuple(
                (local.names[over[buffer]], name)
                for buffer, name in zip(task.writes, names, strict=False)
                if buffer in over
            ),
        )
        tasks = list(node.state.tasks)
        tasks[task.index] = TaskState(lasts, index)
        room = self._rooms[group.memory]
        filled = list(local.with_items(room, items, names))
        changed = {memory: [each] for memory, each in contents.items()} | {group.memory: filled}
        for shelves, all_names in combined(node, changed, self._rooms):
            state = node.state._replace(tasks=tuple(tasks), shelves=shelves)
            yield Node(state, all_names, node.made + len(items)), start

    def _item_written(
        self,
        memory: MemoryIdx,
        buffer: int,
        lasts: Cycles,
        residue: int,
        over: dict[int, int],
        local: Contents,
    ) -> Item:
        old = over.get(buffer)
        is_placed = self._given.home(buffer, memory) is not None
        if is_placed:
            residue = 0
        if old is not None:
            residue = local.stays[old].residue
        return Item(
            stay=Stay(buffer, residue, lasts, lasts, True, False),
            bytes=self._given.problem.buffers[buffer].bytes,
            over=old,
            is_placed=is_placed,
        )
