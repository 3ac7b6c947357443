"""Successors of a state: a task starts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from spmilp.problem.problem import Task
from spmilp.units import Cycles, MemoryIdx, TaskIdx
from tests.oracle.capacity import CapacityModel, Item
from tests.oracle.contents import Contents, combined
from tests.oracle.state import DONE, WAITING, LiveResidency, Node, State, TaskState
from tests.oracle.tables import CoreGroup, ProblemTables


@dataclass(frozen=True, slots=True)
class TaskStart:
    """A task starts: on a core of a group, with named residencies for its operands and results.

    Parameters
    ----------
    in_place
        ``(old, new)``: the residencies of pairs in place.
    """

    task: TaskIdx
    group: int
    cycles: Cycles
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: int | None
    in_place: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Operand:
    """A residency that can serve a read."""

    memory: MemoryIdx
    position: int
    extra: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One way to start a task.

    Parameters
    ----------
    group
        Index of the group of cores.
    in_place
        Position of the residency that each of these buffers written is in place of.
    residues
        Of the addresses of the buffers written.
    """

    task: Task
    group: int
    cycles: Cycles
    operands: tuple[_Operand, ...]
    in_place: dict[int, int]
    residues: tuple[int, ...]


class TaskStarts:
    """Every task that could start, on every group of cores, from every residency."""

    def __init__(self, tables: ProblemTables, models: Sequence[CapacityModel]) -> None:
        self._tables = tables
        self._models = models

    def after(self, node: Node) -> Iterator[tuple[Node, TaskStart]]:
        """Yield the successors by the start of one task."""
        state = node.state
        busy = [0] * len(self._tables.groups)
        for task_state in state.tasks:
            if task_state.left > 0:
                busy[task_state.group] += 1
        for task in self._tables.problem.tasks:
            if not self._is_ready(state, task.index):
                continue
            for index, group, cycles in self._tables.able[task.index]:
                if busy[index] < len(group.cores):
                    yield from self._on(node, task, index, cycles)

    def _is_ready(self, state: State, task: TaskIdx) -> bool:
        before = self._tables.predecessors[task]
        return state.tasks[task].left == WAITING and all(
            state.tasks[earlier].left == DONE for earlier in before
        )

    def _on(
        self, node: Node, task: Task, index: int, cycles: Cycles
    ) -> Iterator[tuple[Node, TaskStart]]:
        group = self._tables.groups[index]
        operands = [self._operands(node.state, group, read) for read in task.reads]
        residues = self._tables.residues[group.memory]
        for served in product(*operands):
            lasts = cycles + sum(operand.extra for operand in served)
            for in_place in self._in_place(node.state, task, group, served):
                for chosen in product(residues, repeat=len(task.writes)):
                    choice = _Choice(
                        task=task,
                        group=index,
                        cycles=lasts,
                        operands=served,
                        in_place=in_place,
                        residues=chosen,
                    )
                    yield from self._started(node, choice)

    def _operands(self, state: State, group: CoreGroup, read: int) -> list[_Operand]:
        """Return the residencies that can serve a read; one of an unconstrained memory."""
        found = []
        for memory, links in zip(group.readable, group.links, strict=True):
            for position, residency in enumerate(state.memories[memory].residencies):
                holds = residency.slice in (read, self._tables.whole[read])
                if holds and residency.valid_in == 0 and not residency.leaving:
                    operand = _Operand(memory, position, self._tables.remote_cycles(read, links))
                    if memory == group.memory and self._models[memory].is_unconstrained:
                        return [operand]
                    found.append(operand)
        return found

    def _in_place(
        self, state: State, task: Task, group: CoreGroup, served: Sequence[_Operand]
    ) -> Iterator[dict[int, int]]:
        """Yield the choices of pairs in place: positions of old residencies by the buffer written.

        The old residency is of exactly the slice, in the core's memory, serves no other read of the
        task, and nothing else reads it any more. An unconstrained memory gains nothing from it.
        """
        yield {}
        if self._models[group.memory].is_unconstrained:
            return
        at = {(o.memory, o.position) for o in served}
        if len(at) < len(served):
            counted = [(o.memory, o.position) for o in served]
            at = {where for where in at if counted.count(where) == 1}
        possible = []
        for read, written in task.in_place:
            operand = served[task.reads.index(read)]
            residency = state.memories[operand.memory].residencies[operand.position]
            if (
                (operand.memory, operand.position) in at
                and operand.memory == group.memory
                and residency.slice == read
                and residency.busy_for == 0
                and self._tables.home(read, group.memory) is None
                and self._tables.home(written, group.memory) is None
            ):
                possible.append((written, operand.position))
        for choice in product((False, True), repeat=len(possible)):
            pairs = [pair for pair, wanted in zip(possible, choice, strict=True) if wanted]
            in_place = dict(pairs)
            if pairs and len(in_place) == len(pairs) == len(set(in_place.values())):
                yield in_place

    def _started(self, node: Node, choice: _Choice) -> Iterator[tuple[Node, TaskStart]]:
        task, served, in_place = choice.task, choice.operands, choice.in_place
        home = self._tables.groups[choice.group].memory
        contents = {
            memory: Contents.of(node, memory)
            for memory in {home, *(operand.memory for operand in served)}
        }
        local = contents[home]
        for operand in served:
            leaves = operand.memory == home and operand.position in in_place.values()
            contents[operand.memory].use(operand.position, choice.cycles, leaves)
        items = list(self._items_written(choice, home, local))
        needs_scratch = task.scratch > 0
        if needs_scratch:
            scratch = LiveResidency(-1 - task.index, -1, 0, choice.cycles, True, True)
            items.append(Item(scratch, task.scratch))
        names = range(node.next_name, node.next_name + len(items))
        start = TaskStart(
            task=task.index,
            group=choice.group,
            cycles=choice.cycles,
            reads=tuple(node.names[o.memory][o.position] for o in served),
            writes=tuple(names[: len(task.writes)]),
            scratch=names[-1] if needs_scratch else None,
            in_place=tuple(
                (local.names[in_place[buffer]], name)
                for buffer, name in zip(task.writes, names, strict=False)
                if buffer in in_place
            ),
        )
        tasks = list(node.state.tasks)
        tasks[task.index] = TaskState(choice.cycles, choice.group)
        filled = list(local.with_items(self._models[home], items, names))
        changed = {memory: [each] for memory, each in contents.items()} | {home: filled}
        for memories, all_names in combined(node, changed, self._models):
            state = node.state._replace(tasks=tuple(tasks), memories=memories)
            yield Node(state, all_names, node.next_name + len(items)), start

    def _items_written(self, choice: _Choice, memory: MemoryIdx, local: Contents) -> Iterator[Item]:
        for buffer, residue in zip(choice.task.writes, choice.residues, strict=True):
            old = choice.in_place.get(buffer)
            is_placed = self._tables.home(buffer, memory) is not None
            if is_placed:
                residue = 0
            if old is not None:
                residue = local.residencies[old].residue
            cycles = choice.cycles
            yield Item(
                residency=LiveResidency(buffer, residue, cycles, cycles, True, False),
                bytes=self._tables.problem.buffers[buffer].bytes,
                in_place_of=old,
                is_placed=is_placed,
            )
