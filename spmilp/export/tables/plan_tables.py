"""The tables that follow from the plan and its problem alone."""

from collections.abc import Iterable, Sequence

from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CoreCommands,
    Move,
    Run,
    Signal,
    Wait,
)
from spmilp.export.subject import SCRATCH, Subject
from spmilp.export.tables import layouts
from spmilp.export.tables.codes import BUFFER_KINDS, MEMORY_KINDS, Filler, ListKind, Operation
from spmilp.export.tables.table import NONE, Layout, Table, Texts, Words
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.plan import Transfer
from spmilp.problem.strides import strided_copy
from spmilp.units import ResidencyIdx, SliceIdx


class PlanTables:
    """Makes the tables of a plan; ``words`` and ``texts`` are the pools that they point into."""

    def __init__(self, subject: Subject, words: Words, texts: Texts) -> None:
        self._subject = subject
        self._problem = subject.problem
        self._machine = subject.problem.machine
        self._plan = subject.plan
        self._words = words
        self._texts = texts

    def hardware(self) -> list[Table]:
        """Return memories, cores and engines."""
        used = self._subject.used()
        memories = [
            (
                *(memory.size or 0, used[memory.index], MEMORY_KINDS[memory.kind]),
                *(memory.alignment, self._texts.add(memory.name), 0),
            )
            for memory in self._machine.memories
        ]
        cores = [
            (core.memory, core.kind, core.index, self._texts.add(core.name))
            for core in self._machine.cores
        ]
        engines, first = [], len(cores)
        for engine in self._machine.engines:
            owner = NONE if engine.owner is None else engine.owner
            engines.append((owner, engine.channels, first, self._texts.add(engine.name)))
            first += engine.channels
        return [
            _table(layouts.MEMORIES, memories, [each.name for each in self._machine.memories]),
            _table(layouts.CORES, cores, [each.name for each in self._machine.cores]),
            _table(layouts.ENGINES, engines, [each.name for each in self._machine.engines]),
        ]

    def data(self) -> list[Table]:
        """Return tensors, buffers and residencies."""
        tensors = [
            (
                *(address, tensor.bytes, tensor.memory, BUFFER_KINDS[tensor.kind], tensor.item),
                *(len(tensor.shape), self._words.add(tensor.shape), self._texts.add(tensor.name)),
            )
            for tensor, address in zip(self._problem.tensors, self._plan.tensors, strict=True)
        ]
        buffers = [
            (
                *(buffer.bytes, BUFFER_KINDS[buffer.kind], buffer.item, len(buffer.shape)),
                *(self._words.add(buffer.shape), self._texts.add(buffer.name), 0),
            )
            for buffer in self._problem.buffers
        ]
        names = [self._subject.name(residency) for residency in self._plan.residencies]
        return [
            _table(layouts.TENSORS, tensors, [each.name for each in self._problem.tensors]),
            _table(layouts.BUFFERS, buffers, [each.name for each in self._problem.buffers]),
            _table(layouts.RESIDENCIES, map(self._residency, range(len(names))), names),
        ]

    def work(self, programs: Sequence[tuple[int, int]]) -> list[Table]:
        """Return tasks and their operands.

        Parameters
        ----------
        programs
            ``(first step, steps)`` of each task.
        """
        operands: list[tuple[int, ...]] = []
        tasks = []
        for placement, (first_step, steps) in zip(self._plan.placements, programs, strict=True):
            task = self._problem.tasks[placement.task]
            first_read = len(operands)
            operands += map(self._operand, task.reads, placement.reads)
            first_write = len(operands)
            operands += map(self._operand, task.writes, placement.writes)
            scratch = NONE if placement.scratch is None else placement.scratch
            tasks.append(
                (
                    *(placement.start, placement.end - placement.start, placement.core),
                    *(first_read, len(task.reads), first_write, len(task.writes), scratch),
                    *(first_step, steps, self._texts.add(task.name), 0),
                )
            )
        names = [task.name for task in self._problem.tasks]
        return [_table(layouts.OPERANDS, operands), _table(layouts.TASKS, tasks, names)]

    def moves(self) -> list[Table]:
        """Return transfers, their copies, and the loops of these."""
        transfers: list[tuple[int, ...]] = []
        copies: list[tuple[int, ...]] = []
        loops: list[tuple[int, ...]] = []
        for move in self._plan.transfers:
            part = self._problem.slices[move.slice]
            transfers.append(
                (
                    *(move.start, move.end - move.start, part.bytes, move.engine, move.channel),
                    *(len(copies), len(move.destinations), part.buffer, 0),
                )
            )
            copies += (self._copy(move, end, loops) for end in move.destinations)
        names = [
            self._problem.buffers[self._problem.slices[move.slice].buffer].name
            for move in self._plan.transfers
        ]
        return [
            _table(layouts.TRANSFERS, transfers, names),
            _table(layouts.COPIES, copies),
            _table(layouts.LOOPS, loops),
        ]

    def commands(self) -> list[Table]:
        """Return the command lists and their commands."""
        lists: list[tuple[int, ...]] = []
        commands: list[tuple[int, ...]] = []
        for one in self._subject.lists.lists:
            lists.append((*_owner(one), len(commands), len(one.commands), 0))
            commands += map(_command, one.commands)
        return [_table(layouts.LISTS, lists), _table(layouts.COMMANDS, commands)]

    def _residency(self, index: ResidencyIdx) -> tuple[int, ...]:
        residency = self._plan.residencies[index]
        filled_by, filler = Filler.NOTHING, NONE
        if residency.filled_by_task is not None:
            filled_by, filler = Filler.TASK, residency.filled_by_task
        elif residency.filled_by_transfer is not None:
            filled_by, filler = Filler.TRANSFER, residency.filled_by_transfer
        buffer, kind = NONE, BUFFER_KINDS[SCRATCH]
        if residency.slice is not None:
            buffer = self._problem.slices[residency.slice].buffer
            kind = BUFFER_KINDS[self._problem.buffers[buffer].kind]
        at_place = int(self._subject.is_at_place(residency))
        return (
            *(
                residency.offset,
                residency.bytes,
                residency.start,
                residency.end,
                residency.memory,
                buffer,
                kind,
            ),
            *(filled_by, filler, at_place),
        )

    def _operand(self, slice_: SliceIdx, residency: ResidencyIdx) -> tuple[int, ...]:
        part = self._problem.slices[slice_]
        buffer = self._problem.buffers[part.buffer]
        layout = layout_in_memory(self._problem, self._plan, slice_, residency)
        return (
            *(layout.offset, self._plan.residencies[residency].memory, residency, part.buffer),
            *(buffer.item, len(part.extent), self._words.add(part.extent)),
            *(self._words.add(layout.strides), 0),
        )

    def _copy(
        self, move: Transfer, end: ResidencyIdx, loops: list[tuple[int, ...]]
    ) -> tuple[int, ...]:
        part = self._problem.slices[move.slice]
        item = self._problem.buffers[part.buffer].item
        source = layout_in_memory(self._problem, self._plan, move.slice, move.source)
        target = layout_in_memory(self._problem, self._plan, move.slice, end)
        copy = strided_copy(part.extent, item, source, target)
        first = len(loops)
        loops += ((from_, to, count, 0) for count, from_, to in copy.loops)
        return (
            *(source.offset, target.offset, self._plan.residencies[move.source].memory),
            *(self._plan.residencies[end].memory, copy.run, first, len(copy.loops), end),
        )


def _table(layout: Layout, rows: Iterable[tuple[int, ...]], notes: Sequence[str] = ()) -> Table:
    return Table(layout=layout, rows=tuple(rows), notes=tuple(notes))


def _owner(one: CoreCommands | ChannelCommands) -> tuple[int, int, int]:
    if isinstance(one, CoreCommands):
        return ListKind.CORE, one.core, 0
    return ListKind.CHANNEL, one.engine, one.channel


def _command(command: Command) -> tuple[int, int, int]:
    match command:
        case Wait(event, count):
            return Operation.WAIT, event, count
        case Signal(event):
            return Operation.SIGNAL, event, 0
        case Run(task):
            return Operation.RUN, task, 0
        case Move(transfer):
            return Operation.MOVE, transfer, 0
