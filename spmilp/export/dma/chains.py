"""The copies of a plan as chains of descriptors, and the tables in which controllers take them.

Copies stand engine by engine and channel by channel. An encoding turns the descriptors of one kind
of controller into tables of hardware words, beside a table of what each descriptor belongs to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.export.tables.table import Column, Layout, Table
from spmilp.machine.controllers import CONTROLLERS, Block, Controller, blocks_of, defects_of
from spmilp.machine.machine import Engine, MemoryKind
from spmilp.plan.addresses import layout_in_memory
from spmilp.plan.plan import Transfer
from spmilp.problem.strides import strided_copy
from spmilp.units import MemoryIdx, ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One destination of a transfer."""

    transfer: Transfer
    source: MemoryIdx
    destination: MemoryIdx
    source_is_spm: bool
    destination_is_spm: bool
    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A block of a copy, and where it stands in the chain of its channel.

    Parameters
    ----------
    first, last
        Whether it is the first and the last one of its transfer.
    """

    copy: Copy
    block: Block
    first: bool
    last: bool


@lru_cache(maxsize=1)
def copies_of(subject: Subject) -> tuple[Copy, ...]:
    """Return the copies in the order of engines, channels and start."""
    moves = sorted(
        subject.plan.transfers, key=lambda move: (move.engine, move.channel, move.start, move.index)
    )
    return tuple(_copy(subject, move, end) for move in moves for end in move.destinations)


def controllers_of(subject: Subject) -> dict[int, Controller]:
    """Return the controller of each engine that has one.

    Raises
    ------
    ExportError
        If a choice of the user names no engine that moves something.
    """
    engines = subject.problem.machine.engines
    found = {engine.index: engine.controller for engine in engines}
    for pattern, name in subject.controllers:
        chosen = [engine for engine in engines if fnmatchcase(engine.name, pattern)]
        if not chosen:
            names = ", ".join(comment(engine.name) for engine in engines[:8])
            raise ExportError(f"dma: no engine is called {comment(pattern)}; there are {names}")
        found |= {engine.index: name for engine in chosen}
    return {index: CONTROLLERS[name] for index, name in found.items() if name is not None}


def chains(subject: Subject, controllers: Mapping[int, Controller]) -> list[Descriptor]:
    """Return the descriptors of all engines that have a controller.

    Raises
    ------
    ExportError
        If no chain of a controller can express a copy.
    """
    found: list[Descriptor] = []
    for copy in copies_of(subject):
        controller = controllers.get(copy.transfer.engine)
        if controller is not None:
            found += _descriptors(subject, copy, controller)
    return found


def _copy(subject: Subject, move: Transfer, end: ResidencyIdx) -> Copy:
    problem, plan = subject.problem, subject.plan
    part = problem.slices[move.slice]
    source = layout_in_memory(problem, plan, move.slice, move.source)
    target = layout_in_memory(problem, plan, move.slice, end)
    shape = strided_copy(part.extent, problem.buffers[part.buffer].item, source, target)
    origin, memory = plan.residencies[move.source].memory, plan.residencies[end].memory
    memories = problem.machine.memories
    return Copy(
        transfer=move,
        source=origin,
        destination=memory,
        source_is_spm=memories[origin].kind is MemoryKind.SPM,
        destination_is_spm=memories[memory].kind is MemoryKind.SPM,
        block=Block(
            source=source.offset,
            destination=target.offset,
            run=shape.run,
            loops=shape.loops,
            loads=memory == problem.machine.engines[move.engine].owner,
        ),
    )


def _descriptors(subject: Subject, copy: Copy, controller: Controller) -> list[Descriptor]:
    engine = subject.problem.machine.engines[copy.transfer.engine]
    for defect in defects_of(copy.block, controller):
        raise ExportError(f"dma: {transfer_name(subject, copy.transfer, engine)}: {defect}")
    blocks = blocks_of(copy.block, controller)
    return [
        Descriptor(copy=copy, block=block, first=number == 0, last=number == len(blocks) - 1)
        for number, block in enumerate(blocks)
    ]


def transfer_name(subject: Subject, move: Transfer, engine: Engine) -> str:
    """Name a transfer for messages."""
    name = subject.name(subject.plan.residencies[move.source])
    return f"transfer {move.index} of {comment(name)} by engine {comment(engine.name)}"


INFO = Layout(
    code=0,
    table="info",
    struct="dma_info",
    says="What a descriptor belongs to, and what its addresses are relative to",
    columns=tuple(
        Column(name, "u32", says)
        for name, says in (
            ("transfer", "number in the tables of the plan"),
            ("engine", "that has it"),
            ("channel", "of the engine"),
            ("source_memory", "add its base to the source address"),
            ("destination_memory", "add its base to the destination address"),
            ("last", "1 for the last descriptor of its transfer"),
        )
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """Encoding of a controller's descriptors.

    Parameters
    ----------
    notes
        Instructions for firmware: lines of a comment.
    encode
        From descriptors, in the order of their channels, to tables.
    """

    notes: tuple[str, ...]
    encode: Callable[[Sequence[Descriptor]], list[Table]]


def words(name: str, says: str, *columns: tuple[str, str]) -> Layout:
    """Return the layout of a descriptor: 32-bit words, written ``(name, meaning)``."""
    return Layout(
        code=0,
        table=name,
        struct=f"dma_{name}",
        says=says,
        columns=tuple(Column(column, "u32", meaning) for column, meaning in columns),
    )


def info(descriptors: Sequence[Descriptor]) -> Table:
    """Return the table of the transfers and memories that descriptors belong to."""
    rows = tuple(
        (
            *(each.copy.transfer.index, each.copy.transfer.engine, each.copy.transfer.channel),
            *(each.copy.source, each.copy.destination, int(each.last)),
        )
        for each in descriptors
    )
    return Table(layout=INFO, rows=rows)


def high_low(high: int, low: int) -> int:
    """Return two numbers of 16 bits, which may be negative, as one word."""
    return (high & 0xFFFF) << 16 | low & 0xFFFF
