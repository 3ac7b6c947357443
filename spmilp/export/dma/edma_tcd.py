"""NXP eDMA: transfer control descriptors.

Layout: 32 B, struct fsl_edma_hw_tcd in Linux drivers/dma/fsl-edma-common.h; minor loop offsets as
in the reference manuals (i.MX RT1060 RM, TCD_NBYTES_MLOFFYES; CR[EMLM] is set).
"""

from collections.abc import Sequence

from spmilp.export.dma.chains import Descriptor, Encoding, high_low, info, words
from spmilp.export.tables.table import Table
from spmilp.machine.controllers import Block, item_size

SIZE = 32
WIDEST = 4
"""Bytes of one access at most: every eDMA has 32-bit accesses."""

START, INT_MAJOR, D_REQ, E_SG = 1 << 0, 1 << 1, 1 << 3, 1 << 4

LAYOUT = words(
    "edma_tcd",
    "Transfer control descriptor, 32 B",
    ("saddr", "0x00: offset in the source memory; add its base"),
    ("attr_soff", "0x04: SOFF in the lower, ATTR in the upper half"),
    ("nbytes", "0x08: NBYTES; bits 31, 30, 29:10 SMLOE, DMLOE and MLOFF (CR[EMLM] = 1)"),
    ("slast", "0x0C: 0"),
    ("daddr", "0x10: offset in the destination memory; add its base"),
    ("citer_doff", "0x14: DOFF in the lower, CITER in the upper half"),
    ("dlast_sga", "0x18: byte offset of the next descriptor; add the table's address if E_SG"),
    ("biter_csr", "0x1C: CSR in the lower, BITER in the upper half"),
)


def _encode(descriptors: Sequence[Descriptor]) -> list[Table]:
    rows = tuple(_row(each, number) for number, each in enumerate(descriptors))
    return [Table(layout=LAYOUT, rows=rows), info(descriptors)]


def _row(each: Descriptor, number: int) -> tuple[int, ...]:
    block = each.block
    item = min(item_size(block), WIDEST)
    width = item.bit_length() - 1
    iterations = block.loops[0][0] if block.loops else 1
    following = 0 if each.last else (number + 1) * SIZE
    csr = START | (INT_MAJOR | D_REQ if each.last else E_SG)
    return (
        *(block.source, high_low(width << 8 | width, item), _nbytes(block), 0),
        *(block.destination, high_low(iterations, item), following, high_low(iterations, csr)),
    )


def _nbytes(block: Block) -> int:
    """Return the bytes of a minor loop and what is added to the addresses after it."""
    if not block.loops:
        return block.run
    ((_, source, destination),) = block.loops
    gaps = (source - block.run, destination - block.run)
    offset = (gaps[0] or gaps[1]) & 0xFFFFF
    return (gaps[0] != 0) << 31 | (gaps[1] != 0) << 30 | offset << 10 | block.run


ENCODING = Encoding(
    notes=(
        "Set CR[EMLM]. Copy the table to memory at a multiple of 32 B, add the bases, and the",
        "table's address where CSR has E_SG. Writing the first descriptor of a transfer into the",
        "channel's TCD registers, CSR last, starts it; the last one raises the interrupt.",
    ),
    encode=_encode,
)
