"""``dma.csv``: descriptors of up to three dimensions that any controller can be fed from.

A row moves ``planes`` times ``rows`` times ``row_bytes``; copies with more loops become several
rows. The rows of a channel stand in the order in which it works; ``next`` is the row that follows
in the channel, and ``last`` tells the end of a transfer (when it may be signalled).
"""

import csv
from collections.abc import Iterator
from io import StringIO

from spmilp.export.dma.chains import Copy, copies_of
from spmilp.export.names import field
from spmilp.export.subject import Subject
from spmilp.machine.controllers import Block, Controller, blocks_of

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


def generic(subject: Subject, head: tuple[str, ...]) -> bytes:
    """Return the file; ``head`` are the lines of its stamp."""
    rows = [
        (copy, block) for copy in copies_of(subject) for block in blocks_of(copy.block, GENERIC)
    ]
    followers = [*(copy for copy, _ in rows[1:]), None]
    out = StringIO()
    out.writelines(f"# {line}\n" for line in head)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, ((copy, block), follower) in enumerate(zip(rows, followers, strict=True)):
        cells = (*_cells(subject, copy, block), *_links(copy, follower, number))
        name = field(subject.name(subject.plan.residencies[copy.transfer.source]))
        writer.writerow((number, *cells, name))
    return out.getvalue().encode()


def _cells(subject: Subject, copy: Copy, block: Block) -> Iterator[object]:
    machine, move = subject.problem.machine, copy.transfer
    engine = machine.engines[move.engine]
    planes, rows = [(1, 0, 0)] * (2 - len(block.loops)) + list(block.loops)
    yield from (move.index, field(engine.name), move.channel)
    yield "move" if engine.owner is None else "load" if block.loads else "store"
    for memory, address in ((copy.source, block.source), (copy.destination, block.destination)):
        yield from (field(machine.memories[memory].name), f"0x{address:x}")
    yield from (block.bytes, block.run, *rows, *planes, move.start, move.end - move.start)


def _links(copy: Copy, follower: Copy | None, number: int) -> tuple[int, int]:
    """Return whether a transfer ends with a row, and the next row of the channel."""
    if follower is None:
        return 1, -1
    move, after = copy.transfer, follower.transfer
    residencies = (move.engine, move.channel) == (after.engine, after.channel)
    return int(move.index != after.index), number + 1 if residencies else -1
