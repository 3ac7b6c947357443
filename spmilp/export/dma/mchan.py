"""PULP's MCHAN: words that are written one after the other to the command register.

Layout: version 7 as in pulp-platform/Deeploy TargetLibraries/PULPOpen/inc/mchan_v7.h, version 6 as
in pulp-platform/dory dory/Hardware_targets/PULP/Common/Utils/mchan.h.
"""

from collections.abc import Callable, Sequence

from spmilp.export.dma.chains import Descriptor, Encoding, info, words
from spmilp.export.tables.table import Layout, Table
from spmilp.machine.controllers import Block

LENGTH_BITS = {"mchan": 17, "mchan_v6": 16}

_DIRECTION, _INCREMENTAL, _EXTERNAL_2D, _EVENT, _LOCAL_2D = 0, 1, 2, 3, 6
"""Positions of flags above the bits of the length."""


def _layout(name: str) -> Layout:
    return words(
        name,
        "A command: write its first words to the command register, in order",
        ("count", "how many of the following words are written"),
        ("command", "length, direction, flags"),
        ("local", "offset in the scratchpad; add its base"),
        ("external", "offset in the other memory; add its base"),
        *(
            (f"argument{number}", "sizes and strides of two-dimensional sides")
            for number in range(4)
        ),
    )


def _encoder(name: str) -> Callable[[Sequence[Descriptor]], list[Table]]:
    def encode(descriptors: Sequence[Descriptor]) -> list[Table]:
        rows = tuple(_row(each.block, LENGTH_BITS[name]) for each in descriptors)
        return [Table(layout=_layout(name), rows=rows), info(descriptors)]

    return encode


def _row(block: Block, bits: int) -> tuple[int, ...]:
    local, external = (block.destination, block.source)
    if not block.loads:
        local, external = external, local
    flags = block.loads << _DIRECTION | 1 << _INCREMENTAL | 1 << _EVENT
    arguments: list[int] = []
    for _, source, destination in block.loops:
        here, there = (destination, source) if block.loads else (source, destination)
        if there != block.run:
            flags |= 1 << _EXTERNAL_2D
            arguments += _size_and_stride(block.run, there, bits)
        if here != block.run:
            flags |= 1 << _LOCAL_2D
            arguments += _size_and_stride(block.run, here, bits)
    command = flags << bits | block.bytes
    return (3 + len(arguments), command, local, external, *arguments, *[0] * (4 - len(arguments)))


def _size_and_stride(run: int, stride: int, bits: int) -> list[int]:
    """Return two words; one for version 6, whose stride is in its upper half."""
    return [stride << 16 | run] if bits == 16 else [run, stride]


def encoding(name: str) -> Encoding:
    """Return the encoding of ``mchan`` (version 7) or ``mchan_v6``."""
    return Encoding(
        notes=(
            "Reading the command register gives a transfer identifier; then write the words of the",
            "descriptors of one transfer, in order, and wait for the identifier. local is in the",
            "engine's own memory, the source of a store and the destination of a load.",
        ),
        encode=_encoder(name),
    )
