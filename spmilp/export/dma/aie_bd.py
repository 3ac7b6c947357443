"""AMD AIE-ML: buffer descriptors of the DMA in a compute tile's memory module.

Layout: docs.amd.com AM025, registers DMA_BD0_0 to DMA_BD0_5 of MEMORY_MODULE. A tile's descriptors
are about its own memory only: a copy has one for each end that is a scratchpad (MM2S at the source,
S2MM at the destination). Ends in DRAM or in memory tiles belong to other descriptors.
"""

from collections.abc import Iterator, Sequence

from spmilp.export.dma.chains import Descriptor, Encoding, words
from spmilp.export.errors import ExportError
from spmilp.export.tables.table import Table
from spmilp.machine.controllers import Block
from spmilp.units import Bytes

WORD = 4
LARGEST_ADDRESS = 2**14 - 1
"""In words: a base address has 14 bits."""

_ID = 16
"""Descriptors of a tile; the chain of a transfer uses the first ones."""

LAYOUT = words(
    "aie_bd",
    "Buffer descriptor of a tile's memory",
    ("bd_0", "27:14 base address, 13:0 length, in words of 32 bits"),
    ("bd_1", "packets and compression: none"),
    ("bd_2", "25:13 step of dimension 1, 12:0 of dimension 0, in words, less 1"),
    ("bd_3", "28:21 wrap of dimension 1, 20:13 of dimension 0, 12:0 step of dimension 2"),
    ("bd_4", "iteration: none"),
    ("bd_5", "30:27 next descriptor, 26 use it, 25 valid; locks are for the firmware to add"),
    ("transfer", "number in the tables of the plan"),
    ("memory", "the tile's"),
    ("mm2s", "1 if it reads this memory, 0 if it writes it"),
    ("number", "in the chain of the transfer, from 0"),
)


def _encode(descriptors: Sequence[Descriptor]) -> list[Table]:
    rows: list[tuple[int, ...]] = []
    number = 0
    for each in descriptors:
        number = 0 if each.first else number + 1
        rows += _rows(each, number)
    return [Table(layout=LAYOUT, rows=tuple(rows))]


def _rows(each: Descriptor, number: int) -> Iterator[tuple[int, ...]]:
    block, copy = each.block, each.copy
    ends = (
        (copy.source, copy.source_is_spm, block.source, 1, 1),
        (copy.destination, copy.destination_is_spm, block.destination, 2, 0),
    )
    for memory, is_spm, address, side, reads in ends:
        if is_spm:
            _is_near(each, address)
            steps = tuple(loop[side] // WORD for loop in block.loops)
            registers = _registers(block, address, steps, each, number)
            yield (*registers, copy.transfer.index, memory, reads, number)


def _registers(
    block: Block, address: Bytes, steps: tuple[int, ...], each: Descriptor, number: int
) -> tuple[int, ...]:
    """Return the six words; ``steps`` are those of the loops, the outermost first."""
    dimension1 = steps[-1] - 1 if steps else 0
    dimension2 = steps[-2] - 1 if len(steps) > 1 else 0
    wrap0 = block.run // WORD if steps else 0
    wrap1 = block.loops[-1][0] if len(steps) > 1 else 0
    chain = 0 if each.last else (number + 1) << 27 | 1 << 26
    return (
        *((address // WORD) << 14 | block.bytes // WORD, 0, dimension1 << 13),
        *(wrap1 << 21 | wrap0 << 13 | dimension2, 0, chain | 1 << 25),
    )


def _is_near(each: Descriptor, address: Bytes) -> None:
    if address // WORD > LARGEST_ADDRESS:
        raise ExportError(
            f"dma: transfer {each.copy.transfer.index}: address {address} B > "
            f"{LARGEST_ADDRESS * WORD} B, the last that an aie_bd reaches"
        )


ENCODING = Encoding(
    notes=(
        f"A tile has {_ID} descriptors; write those of a transfer to the first ones, add the locks",
        "that order it (bd_5), and put number 0 into the queue of the channel.",
    ),
    encode=_encode,
)
