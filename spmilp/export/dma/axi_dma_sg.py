"""AMD (Xilinx) AXI DMA in scatter/gather mode: a descriptor for each end of a loop-back stream.

Layout: AMD PG021, "Scatter/Gather Descriptor"; Linux drivers/dma/xilinx/xilinx_dma.c.
"""

from collections.abc import Sequence
from itertools import groupby

from spmilp.export.dma.chains import Descriptor, Encoding, info, words
from spmilp.export.tables.table import Table

SIZE = 64
START_OF_FRAME, END_OF_FRAME = 1 << 27, 1 << 26

_COLUMNS = (
    ("nxtdesc", "0x00: byte offset of the next descriptor of the ring; add the ring's address"),
    ("nxtdesc_msb", "0x04: upper half of it"),
    ("buffer_address", "0x08: offset in the memory; add the memory's base"),
    ("buffer_address_msb", "0x0C: upper half of it"),
    ("reserved0", "0x10"),
    ("reserved1", "0x14"),
    ("control", "0x18: bits 25:0 bytes; bit 27 first, bit 26 last of the transfer (MM2S)"),
    ("status", "0x1C: written by the hardware"),
    *((f"app{number}", f"{0x20 + 4 * number:#x}: unused") for number in range(5)),
    *((f"pad{number}", f"{0x34 + 4 * number:#x}: up to 64 B") for number in range(3)),
)
MM2S = words("axi_dma_mm2s", "Reads from memory", *_COLUMNS)
S2MM = words("axi_dma_s2mm", "Writes to memory", *_COLUMNS)


def _encode(descriptors: Sequence[Descriptor]) -> list[Table]:
    followers = _ring(descriptors)
    reads, writes = [], []
    for each, follower in zip(descriptors, followers, strict=True):
        ends = START_OF_FRAME * each.first | END_OF_FRAME * each.last
        reads.append(_row(follower, each.block.source, each.block.run | ends))
        writes.append(_row(follower, each.block.destination, each.block.run))
    return [
        Table(layout=MM2S, rows=tuple(reads)),
        Table(layout=S2MM, rows=tuple(writes)),
        info(descriptors),
    ]


def _ring(descriptors: Sequence[Descriptor]) -> list[int]:
    """Return the descriptor after each one; behind the last of a channel comes its first."""
    followers: list[int] = []
    for _, group in groupby(
        descriptors, key=lambda each: (each.copy.transfer.engine, each.copy.transfer.channel)
    ):
        first, count = len(followers), len(list(group))
        followers += [*range(first + 1, first + count), first]
    return followers


def _row(follower: int, address: int, control: int) -> tuple[int, ...]:
    low, high = address & 0xFFFFFFFF, address >> 32
    return (follower * SIZE, 0, low, high, 0, 0, control, *(0,) * 9)


ENCODING = Encoding(
    notes=(
        "The MM2S and the S2MM stream of each channel are connected to each other; the DMA has a",
        "Data Realignment Engine (else addresses must be multiples of the stream's width).",
        "Copy the tables to memory at multiples of 64 B, add the bases, set CURDESC to the first",
        "descriptor of a channel; TAILDESC at the last descriptor of a transfer starts it.",
    ),
    encode=_encode,
)
