"""The constants' bytes, and where addresses of the plan lie in a program."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from spmilp.checker.values.inputs import values_at_start
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network
from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import home_of
from spmilp.units import Bytes, MemoryIdx, align_up

WORKSPACE_SPACE, FIRST_SPACE = 1, 2
"""Numbers of address spaces; 0 is a list's own memory, memory ``m`` is ``FIRST_SPACE + m``."""

ALIGNMENT = 16
"""Least alignment, in bytes, of what lies in the workspace and of constants in the image."""


class Address(NamedTuple):
    """A byte of a program: an address space, and how far it is from its base."""

    space: int
    offset: Bytes

    def further(self, offset: Bytes) -> "Address":
        """Return the address that is some bytes further."""
        return Address(self.space, self.offset + offset)


class Segment(NamedTuple):
    """Bytes of constants that the plan has at an address, and where they stand in the image."""

    address: Bytes
    bytes: Bytes
    image: Bytes
    memory: MemoryIdx


class Places:
    """The image of constants, and a map from addresses of the plan to those of the program.

    A DRAM's constants stay in the image, which nothing writes. What else the plan uses of it
    lies together without the gaps that the constants leave; each run of bytes keeps its place in
    relation to the memory's alignment. Other memories stay as they are, and constants that are
    there at the start are written to them. ``used`` are the bytes that each memory takes.
    """

    def __init__(self, subject: Subject, network: Network) -> None:
        memories = subject.problem.machine.memories
        self.space_of_image = FIRST_SPACE + len(memories)
        segments, self.image = _constants(subject, network)
        self.on_chip = [
            each for each in segments if memories[each.memory].kind is not MemoryKind.DRAM
        ]
        self.used = [0] * len(memories)
        for residency in subject.plan.residencies:
            end = max(residency.offset, *residency.instances, 0) + residency.bytes
            self.used[residency.memory] = max(self.used[residency.memory], end)
        self._runs: dict[MemoryIdx, list[tuple[Bytes, Bytes, Address]]] = {}
        for memory in memories:
            if memory.kind is not MemoryKind.DRAM:
                continue
            constants = [each for each in segments if each.memory == memory.index]
            runs = [
                (each.address, each.address + each.bytes, Address(self.space_of_image, each.image))
                for each in constants
            ]
            starts, end_of_all = {each.address for each in constants}, 0
            written = _written(subject, memory.index, starts)
            for start, end in _joined(written):
                offset = align_up(end_of_all, memory.alignment) + start % memory.alignment
                runs.append((start, end, Address(FIRST_SPACE + memory.index, offset)))
                end_of_all = offset + end - start
            self._runs[memory.index] = sorted(runs)
            self.used[memory.index] = end_of_all

    def of(self, memory: MemoryIdx, address: Bytes) -> Address:
        """Return where a byte of the plan lies; the bytes of a tensor stay together."""
        if memory not in self._runs:
            return Address(FIRST_SPACE + memory, address)
        runs = self._runs[memory]
        start, _, place = runs[bisect_right(runs, address, key=lambda run: run[0]) - 1]
        return place.further(address - start)


def _constants(subject: Subject, network: Network) -> tuple[list[Segment], bytes]:
    """Return where constants lie at the start, and the image of their bytes."""
    segments, image = list[Segment](), bytearray()
    for memory, address, values in values_at_start(subject.problem, subject.plan, network, None):
        content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        alignment = max(ALIGNMENT, subject.problem.machine.memories[memory].alignment)
        image += bytes(align_up(len(image), alignment) - len(image))
        segments.append(Segment(address, len(content), len(image), memory))
        image += content
    return segments, bytes(image)


def _written(
    subject: Subject, memory: MemoryIdx, constants: set[Bytes]
) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the bytes of a DRAM that are no constants: tensors, and what lies there for a while."""
    stream = subject.plan.stream
    more = stream.instances if stream is not None and stream.instances else None
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory and address not in constants:
            for start in (address, *(more[tensor.index] if more else ())):
                yield start, start + tensor.bytes
    for residency in subject.plan.residencies:
        if residency.memory == memory and home_of(subject.problem, residency) is None:
            for start in (residency.offset, *residency.instances):
                yield start, start + residency.bytes


def _joined(runs: Iterable[tuple[Bytes, Bytes]]) -> list[tuple[Bytes, Bytes]]:
    """Return runs of bytes without overlaps, in order."""
    found: list[tuple[Bytes, Bytes]] = []
    for start, end in sorted(runs):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
