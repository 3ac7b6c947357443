"""DMA descriptors: a table for any controller, and chains for those that presets name.

Copies stand engine by engine and channel by channel. The chains of a named controller are arrays of
its hardware words, beside an array of what each descriptor belongs to. Layouts:

``epiphany``
    ``e_dma_desc_t``, 24 B at a multiple of 8, and the bits of its configuration, in
    adapteva/epiphany-libs e-lib/include/e_dma.h. An outer stride leads from the last item of a row
    to the first of the next.
``mchan``, ``mchan_v6``
    Words that are written one after the other to the command register: version 7 as in
    pulp-platform/Deeploy TargetLibraries/PULPOpen/inc/mchan_v7.h, version 6 as in
    pulp-platform/dory dory/Hardware_targets/PULP/Common/Utils/mchan.h.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

from spmilp.export.c_text import filled, rows, stamp
from spmilp.export.errors import ExportError
from spmilp.export.names import comment, csv_file, field
from spmilp.export.subject import Subject
from spmilp.machine.controllers import (
    CONTROLLERS,
    Block,
    Controller,
    blocks_of,
    item_size,
)
from spmilp.plan.plan import Transfer
from spmilp.units import MemoryIdx

TITLE = ("spmilp-dma", "1.0")

COLUMNS = (
    *("descriptor", "transfer", "engine", "channel", "dir"),
    *("src_memory", "src_addr", "dst_memory", "dst_addr", "bytes", "row_bytes"),
    *("rows", "src_stride", "dst_stride", "planes", "src_pstride", "dst_pstride"),
    *("start_cycle", "cycles", "last", "next", "name"),
)

_UNLIMITED = 2**63

GENERIC = Controller(
    name="generic",
    run=_UNLIMITED,
    total=_UNLIMITED,
    turns=(_UNLIMITED, _UNLIMITED),
    source="any controller",
)
"""Loops of up to three dimensions, the run of bytes included, and nothing else limits it."""


class Descriptor(NamedTuple):
    """A block of what goes to one destination of a transfer.

    Parameters
    ----------
    source, destination
        The memories.
    position
        Counts from 0 the descriptors that go there; the last one is ``last``.
    """

    transfer: Transfer
    source: MemoryIdx
    destination: MemoryIdx
    block: Block
    position: int
    last: bool


def dma_files(subject: Subject) -> dict[str, bytes]:
    """Return ``dma.csv``, and C files for each controller with an encoding that an engine has.

    Raises
    ------
    ExportError
        If a controller cannot express a copy.
    """
    files = {"dma.csv": csv_file(subject.head(TITLE), COLUMNS, _generic_rows(subject))}
    found = controllers_of(subject)
    for name in sorted({controller.name for controller in found.values()} & ENCODINGS.keys()):
        own = {index: each for index, each in found.items() if each.name == name}
        files |= _pair(subject, CONTROLLERS[name], descriptors_of(subject, own))
    return files


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


def descriptors_of(subject: Subject, controllers: Mapping[int, Controller]) -> list[Descriptor]:
    """Return the descriptors of engines with their controllers: by engine, channel and start."""
    moves = sorted(subject.plan.transfers, key=lambda e: (e.engine, e.channel, e.start, e.index))
    return [
        descriptor
        for move in moves
        if move.engine in controllers
        for source, target, block in subject.copies(move)
        for descriptor in chain_of(move, (source, target), block, controllers[move.engine])
    ]


def chain_of(
    transfer: Transfer,
    memories: tuple[MemoryIdx, MemoryIdx],
    block: Block,
    controller: Controller,
) -> list[Descriptor]:
    """Return the descriptors of a copy from a memory to another one."""
    blocks = blocks_of(block, controller)
    return [
        Descriptor(transfer, *memories, each, number, number == len(blocks) - 1)
        for number, each in enumerate(blocks)
    ]


def _generic_rows(subject: Subject) -> Iterator[tuple[object, ...]]:
    """Yield descriptors of up to three dimensions for any controller.

    A row moves ``planes`` times ``rows`` times ``row_bytes``; copies with more loops become several
    rows. The rows of a channel stand in the order in which it works; ``next`` is the row that
    follows in the channel, and ``last`` marks the end of a transfer (when it may be signalled).
    """
    machine, plan = subject.problem.machine, subject.plan
    rows = descriptors_of(subject, dict.fromkeys(range(len(machine.engines)), GENERIC))
    followers = [*(each.transfer for each in rows[1:]), None]
    for number, (each, after) in enumerate(zip(rows, followers, strict=True)):
        move, block = each.transfer, each.block
        engine = machine.engines[move.engine]
        planes, turns = [(1, 0, 0)] * (2 - len(block.loops)) + list(block.loops)
        direction = "move" if engine.owner is None else "load" if block.loads else "store"
        last, following = 1, -1
        if after is not None:
            last = int(move.index != after.index)
            if (move.engine, move.channel) == (after.engine, after.channel):
                following = number + 1
        yield (
            *(number, move.index, field(engine.name), move.channel, direction),
            *(field(machine.memories[each.source].name), f"0x{block.source:x}"),
            *(field(machine.memories[each.destination].name), f"0x{block.destination:x}"),
            *(block.bytes, block.run, *turns, *planes, move.start, move.end - move.start),
            *(last, following, field(subject.name(plan.residencies[move.source]))),
        )


def info_of(each: Descriptor) -> tuple[int, ...]:
    """Return what a descriptor belongs to, as C has it."""
    move, last = each.transfer, int(each.last)
    return (move.index, move.engine, move.channel, each.source, each.destination, last)


def words_of(descriptors: Iterable[Descriptor], controller: str) -> list[tuple[int, ...]]:
    """Return the hardware words of descriptors.

    Raises
    ------
    ExportError
        If a word cannot hold a number.
    """
    found = []
    for each in descriptors:
        words = ENCODINGS[controller].words(each)
        for word in words:
            if not 0 <= word < 1 << 32:
                raise ExportError(
                    f"dma: transfer {each.transfer.index}: {word} is outside [0, {(1 << 32) - 1}] "
                    f"of a word of {controller}"
                )
        found.append(words)
    return found


def _pair(
    subject: Subject, controller: Controller, descriptors: Sequence[Descriptor]
) -> dict[str, bytes]:
    """Return header and source with the descriptors of a controller."""
    name, encoding = f"{subject.prefix}_dma_{controller.name}", ENCODINGS[controller.name]
    marks: dict[str, object] = {
        "NAME": name,
        "UPPER": name.upper(),
        "CONTROLLER": controller.name,
        "SOURCE": controller.source,
        "STAMP": stamp(subject, TITLE, has_values=True),
        "COUNT": len(descriptors),
        "ROOM": max(1, len(descriptors)),
        "WORDS": rows(words_of(descriptors, controller.name), encoding.columns),
        "INFO": rows([info_of(each) for each in descriptors], 6),
    }
    marks["DESCRIPTOR"] = filled(encoding.template, marks)
    return {f"{name}.{kind}": filled(f"dma.{kind}", marks).encode() for kind in "hc"}


_EPIPHANY_SIZE = 24
"""Bytes of a descriptor of the Epiphany's DMA."""
_ENABLE, _MASTER, _CHAIN = 1 << 0, 1 << 1, 1 << 2
_ITEM = 5
"""Position of the logarithm of an item's bytes."""


def _high_low(high: int, low: int) -> int:
    """Return two numbers of 16 bits, which may be negative, as one word."""
    return (high & 0xFFFF) << 16 | low & 0xFFFF


def _epiphany(each: Descriptor) -> tuple[int, ...]:
    block = each.block
    item = item_size(block)
    config = _ENABLE | _MASTER | (item.bit_length() - 1) << _ITEM
    if not each.last:
        following = (each.position + 1) * _EPIPHANY_SIZE
        if following > 0xFFFF:
            raise ExportError(
                f"dma: transfer {each.transfer.index}: its chain has a descriptor at "
                f"{following} B > {0xFFFF} B, the last that the pointer of an epiphany reaches"
            )
        config |= _CHAIN | following << 16
    rows, jumps = 1, (item, item)
    for count, source, destination in block.loops:
        rows, jumps = count, (source - block.run + item, destination - block.run + item)
    return (
        *(config, _high_low(item, item), _high_low(rows, block.run // item)),
        *(_high_low(jumps[1], jumps[0]), block.source, block.destination),
    )


_DIRECTION, _INCREMENTAL, _EXTERNAL_2D, _EVENT, _LOCAL_2D = 0, 1, 2, 3, 6
"""Positions of an MCHAN's flags above the bits of the length."""


def _mchan(bits: int, each: Descriptor) -> tuple[int, ...]:
    """Return a command whose length has some bits; 16 are those of version 6."""
    block = each.block
    local, external = (block.destination, block.source)
    if not block.loads:
        local, external = external, local
    flags = block.loads << _DIRECTION | 1 << _INCREMENTAL | 1 << _EVENT
    arguments: list[int] = []
    for _, source, destination in block.loops:
        here, there = (destination, source) if block.loads else (source, destination)
        for stride, flag in ((there, _EXTERNAL_2D), (here, _LOCAL_2D)):
            if stride != block.run:
                flags |= 1 << flag
                # Two words; one in version 6, whose stride is in its upper half.
                arguments += [stride << 16 | block.run] if bits == 16 else [block.run, stride]
    command = flags << bits | block.bytes
    return (3 + len(arguments), command, local, external, *arguments, *[0] * (4 - len(arguments)))


class Encoding(NamedTuple):
    """How a controller has descriptors: the template of their struct, its columns, and a row."""

    template: str
    columns: int
    words: Callable[[Descriptor], tuple[int, ...]]


ENCODINGS: Mapping[str, Encoding] = {
    "mchan": Encoding("dma_mchan.h", 8, partial(_mchan, 17)),
    "mchan_v6": Encoding("dma_mchan.h", 8, partial(_mchan, 16)),
    "epiphany": Encoding("dma_epiphany.h", 6, _epiphany),
}
"""Encodings of descriptors by controller; engines of others have the generic table alone."""
