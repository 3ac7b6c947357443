"""``minimalloc-memoryN.csv``: offset allocation as MiniMalloc reads and writes it.

One file for each memory in which something lies packed: ``id,lower,upper,size,offset`` and nothing
else, so the head stands in ``export.json``. Format: google/minimalloc, README.md.

Residencies that share bytes in place are one row, for they must lie together. DRAM tensors and
reserved ranges are rows that live as long as the plan.
"""

from collections import defaultdict
from collections.abc import Iterator

from spmilp.export.subject import Subject
from spmilp.plan.plan import Residency
from spmilp.units import MemoryIdx

NAME, VERSION = "minimalloc-csv", "1.0"

COLUMNS = "id,lower,upper,size,offset"


def minimalloc(subject: Subject) -> dict[str, bytes]:
    """Return the files; ``upper`` is exclusive, and cycles and bytes are the plan's."""
    packed: defaultdict[MemoryIdx, list[Residency]] = defaultdict(list)
    for residency in subject.plan.residencies:
        if not subject.is_at_place(residency):
            packed[residency.memory].append(residency)
    return {
        f"minimalloc-memory{memory}.csv": "\n".join(
            (COLUMNS, *_rows(subject, memory, residencies), "")
        ).encode()
        for memory, residencies in sorted(packed.items())
    }


def _rows(subject: Subject, memory: MemoryIdx, residencies: list[Residency]) -> Iterator[str]:
    until = max(subject.plan.claim.makespan, *(residency.end for residency in residencies))
    for number, taken in enumerate(subject.problem.machine.memories[memory].reserved):
        yield f"reserved{number},0,{until},{taken.end - taken.start},{taken.start}"
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory:
            yield f"t{tensor.index},0,{until},{tensor.bytes},{address}"
    for together in _in_place(residencies):
        name = "+".join(f"r{residency.index}" for residency in together)
        lower = min(residency.start for residency in together)
        upper = max(residency.end for residency in together)
        size = max(residency.bytes for residency in together)
        yield f"{name},{lower},{upper},{size},{together[0].offset}"


def _in_place(residencies: list[Residency]) -> list[list[Residency]]:
    """Return chains of residencies at one offset of which each begins before the last has ended.

    In a valid plan these are the pairs that share their bytes in place.
    """
    chains: list[list[Residency]] = []
    for residency in sorted(
        residencies, key=lambda residency: (residency.offset, residency.start, residency.index)
    ):
        last = chains[-1] if chains else []
        if (
            last
            and last[0].offset == residency.offset
            and max(s.end for s in last) > residency.start
        ):
            last.append(residency)
        else:
            chains.append([residency])
    return sorted(chains, key=lambda chain: chain[0].index)
