"""Where bytes lie in a program: constants in the image, the rest of a DRAM together."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spmilp.export.errors import ExportError
from spmilp.export.subject import Subject
from spmilp.export.tables.table import Tables
from spmilp.machine.machine import MemoryKind
from spmilp.units import Bytes, MemoryIdx, align_up

WORKSPACE_SPACE, FIRST_SPACE = 1, 2
"""Numbers of address spaces; 0 is a list's own memory, memory ``m`` is ``FIRST_SPACE + m``."""


class Address(NamedTuple):
    """A byte of a program: an address space, and how far it is from its base."""

    space: int
    offset: Bytes


class Places:
    """Maps addresses of the plan to those of the program.

    A DRAM's constants stay in the image, which nothing writes. What else the plan uses of it
    lies together without the gaps that the constants leave; each run of bytes keeps its place in
    relation to the memory's alignment. Other memories stay as they are.
    """

    def __init__(self, subject: Subject, tables: Tables) -> None:
        self._memories = subject.problem.machine.memories
        self.image = FIRST_SPACE + len(self._memories)
        self.used = list(subject.used())
        self.on_chip: list[tuple[int, ...]] = []
        self._runs: dict[MemoryIdx, list[tuple[Bytes, Bytes, int, Bytes]]] = {}
        constants: dict[MemoryIdx, list[tuple[Bytes, Bytes, Bytes]]] = {}
        for row in tables.of("segments").rows:
            address, size, image, index, _ = row
            if self._memories[index].kind is MemoryKind.DRAM:
                constants.setdefault(index, []).append((address, address + size, image))
            else:
                self.on_chip.append((*row[:4], 0))
        for memory in self._memories:
            if memory.kind is MemoryKind.DRAM:
                self._place(subject, memory.index, constants.get(memory.index, []))

    def of(self, memory: MemoryIdx, address: Bytes) -> Address:
        """Return where a byte of the plan lies.

        Raises
        ------
        ExportError
            If nothing of the plan lies there.
        """
        if memory not in self._runs:
            return Address(FIRST_SPACE + memory, address)
        runs = self._runs[memory]
        found = bisect_right(runs, address, key=lambda run: run[0]) - 1
        if found < 0 or address >= runs[found][1]:
            name = self._memories[memory].name
            raise ExportError(f"export: nothing lies at {address} of memory {name}")
        start, _, space, offset = runs[found]
        return Address(space, offset + address - start)

    def _place(
        self, subject: Subject, index: MemoryIdx, constants: Sequence[tuple[Bytes, Bytes, Bytes]]
    ) -> None:
        alignment = self._memories[index].alignment
        starts = {start for start, _, _ in constants}
        runs = [(start, end, self.image, image) for start, end, image in constants]
        end_of_all = 0
        for start, end in _joined(_written(subject, index, starts)):
            offset = align_up(end_of_all, alignment) + start % alignment
            runs.append((start, end, FIRST_SPACE + index, offset))
            end_of_all = offset + end - start
        self._runs[index] = sorted(runs)
        self.used[index] = end_of_all


def _written(
    subject: Subject, memory: MemoryIdx, constants: set[Bytes]
) -> Iterable[tuple[Bytes, Bytes]]:
    """Yield the bytes of a DRAM that are no constants: tensors, and what lies there for a while."""
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory and address not in constants:
            yield address, address + tensor.bytes
    for residency in subject.plan.residencies:
        if residency.memory == memory and not subject.is_at_place(residency):
            yield residency.offset, residency.offset + residency.bytes


def _joined(runs: Iterable[tuple[Bytes, Bytes]]) -> list[tuple[Bytes, Bytes]]:
    """Return runs of bytes without overlaps, in order."""
    found: list[tuple[Bytes, Bytes]] = []
    for start, end in sorted(runs):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
