"""The constants' bytes, and where addresses of the plan lie in a program."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spmilp.checker.values.inputs import values_at_start
from spmilp.export.errors import ExportError
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network
from spmilp.machine.machine import MemoryKind
from spmilp.units import Bytes, MemoryIdx, align_up

WORKSPACE_SPACE, FIRST_SPACE = 1, 2
"""Numbers of address spaces; 0 is a list's own memory, memory ``m`` is ``FIRST_SPACE + m``."""

ALIGNMENT = 16
"""Least alignment, in bytes, of what lies in the workspace and of constants in the image."""


class Address(NamedTuple):
    """A byte of a program: an address space, and how far it is from its base."""

    space: int
    offset: Bytes


class Segment(NamedTuple):
    """Bytes of constants that the plan has at an address, and where they stand in the image."""

    address: Bytes
    bytes: Bytes
    image: Bytes
    memory: MemoryIdx


@lru_cache(maxsize=1)
def constants_of(subject: Subject, network: Network) -> tuple[tuple[Segment, ...], bytes]:
    """Return where constants lie at the start, and the image of their bytes.

    Raises
    ------
    ValuesError
        If the model has no values of one.
    """
    segments: list[Segment] = []
    image = bytearray()
    for memory, address, values in values_at_start(subject.problem, subject.plan, network, None):
        content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        alignment = max(ALIGNMENT, subject.problem.machine.memories[memory].alignment)
        image += bytes(align_up(len(image), alignment) - len(image))
        segments.append(Segment(address, len(content), len(image), memory))
        image += content
    return tuple(segments), bytes(image)


class Places:
    """Maps addresses of the plan to those of the program.

    A DRAM's constants stay in the image, which nothing writes. What else the plan uses of it
    lies together without the gaps that the constants leave; each run of bytes keeps its place in
    relation to the memory's alignment. Other memories stay as they are.
    """

    def __init__(self, subject: Subject, segments: Sequence[Segment]) -> None:
        self._memories = subject.problem.machine.memories
        self.image = FIRST_SPACE + len(self._memories)
        self.used = list(subject.used())
        drams = [each.index for each in self._memories if each.kind is MemoryKind.DRAM]
        self.on_chip = tuple(each for each in segments if each.memory not in drams)
        self._runs: dict[MemoryIdx, list[tuple[Bytes, Bytes, int, Bytes]]] = {}
        for index in drams:
            self._place(subject, index, [each for each in segments if each.memory == index])

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

    def _place(self, subject: Subject, index: MemoryIdx, constants: Sequence[Segment]) -> None:
        alignment = self._memories[index].alignment
        starts = {each.address for each in constants}
        runs = [(c.address, c.address + c.bytes, self.image, c.image) for c in constants]
        end_of_all = 0
        for start, end in _joined(_written(subject, index, starts)):
            offset = align_up(end_of_all, alignment) + start % alignment
            runs.append((start, end, FIRST_SPACE + index, offset))
            end_of_all = offset + end - start
        self._runs[index] = sorted(runs)
        self.used[index] = end_of_all


def _written(
    subject: Subject, memory: MemoryIdx, constants: set[Bytes]
) -> Iterator[tuple[Bytes, Bytes]]:
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
