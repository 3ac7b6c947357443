"""Adapteva Epiphany: descriptors of a core's DMA.

Layout: e_dma_desc_t, 24 B at a multiple of 8, and the bits of its configuration, in
adapteva/epiphany-libs e-lib/include/e_dma.h. An outer stride leads from the last item of a row to
the first of the next.
"""

from collections.abc import Sequence

from spmilp.export.dma.chains import Descriptor, Encoding, high_low, info, words
from spmilp.export.errors import ExportError
from spmilp.export.tables.table import Table
from spmilp.machine.controllers import item_size

SIZE = 24
ENABLE, MASTER, CHAIN = 1 << 0, 1 << 1, 1 << 2
ITEM = 5
"""Position of the logarithm of an item's bytes."""

LAYOUT = words(
    "epiphany",
    "Descriptor of a transfer, 24 B",
    ("config", "bits; if CHAIN, the upper half is the next one's offset from the transfer's first"),
    ("inner_stride", "bytes between items: source in the lower, destination in the upper half"),
    ("count", "items of a row in the lower, rows in the upper half"),
    ("outer_stride", "bytes from a row's last item to the next row, as above"),
    ("src_addr", "offset in the source memory; add its global address"),
    ("dst_addr", "offset in the destination memory; add its global address"),
)


def _encode(descriptors: Sequence[Descriptor]) -> list[Table]:
    rows, position = [], 0
    for each in descriptors:
        position = 0 if each.first else position + 1
        rows.append(_row(each, position))
    return [Table(layout=LAYOUT, rows=tuple(rows)), info(descriptors)]


def _row(each: Descriptor, position: int) -> tuple[int, ...]:
    block = each.block
    item = item_size(block)
    config = ENABLE | MASTER | (item.bit_length() - 1) << ITEM
    if not each.last:
        following = (position + 1) * SIZE
        if following > 0xFFFF:
            raise ExportError(
                f"dma: transfer {each.copy.transfer.index}: its chain has a descriptor at "
                f"{following} B > {0xFFFF} B, the last that the pointer of an epiphany reaches"
            )
        config |= CHAIN | following << 16
    rows, jumps = 1, (item, item)
    for count, source, destination in block.loops:
        rows, jumps = count, (source - block.run + item, destination - block.run + item)
    return (
        *(config, high_low(item, item), high_low(rows, block.run // item)),
        *(high_low(jumps[1], jumps[0]), block.source, block.destination),
    )


ENCODING = Encoding(
    notes=(
        "Copy the descriptors of a transfer to the core's memory at a multiple of 8 B, add the",
        "global addresses of the memories to src_addr and dst_addr, and the local address of the",
        "copy to the upper halves of config that have CHAIN; then start it with e_dma_start.",
    ),
    encode=_encode,
)
