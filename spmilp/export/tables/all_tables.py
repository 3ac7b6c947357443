"""All tables of a plan and, where the network is known, the image of its constants."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from spmilp.checker.values.addresses import Addresses, inverse
from spmilp.checker.values.inputs import given_values
from spmilp.export.subject import Subject
from spmilp.export.tables import layouts
from spmilp.export.tables.codes import SCHEMES, Direction
from spmilp.export.tables.operators import type_code
from spmilp.export.tables.plan_tables import PlanTables
from spmilp.export.tables.programs import Programs
from spmilp.export.tables.table import Table, Tables, Texts, Words
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import slices
from spmilp.plan.plan import Residency
from spmilp.problem.problem import DramTensor
from spmilp.problem.strides import row_major_strides
from spmilp.units import align_up


@lru_cache(maxsize=1)
def all_tables(subject: Subject) -> Tables:
    """Return every table; those that need the network are empty where it is not known.

    Raises
    ------
    ExportError
        If a number does not fit its field, or an operator cannot be expressed.
    TooManyEventsError
        If the machine has too few events for the command lists.
    ValuesError
        If the model has no values of a constant.
    """
    words, texts = Words(), Texts()
    texts.add("")
    plan = PlanTables(subject, words, texts)
    nothing = [(0, 0)] * len(subject.problem.tasks)
    workspace, image = 0, b""
    network_tables = [Table(layout=each, rows=()) for each in layouts.NETWORK_LAYOUTS]
    programs = nothing
    if subject.network is not None:
        made = Programs(subject, subject.network, words, texts)
        programs = [
            made.add(subject.problem.tasks[placement.task], placement)
            for placement in subject.plan.placements
        ]
        workspace = made.workspace
        network_tables, image = _network_tables(subject, subject.network, made, words, texts)
    tables = (
        _summary(subject, workspace),
        *(*plan.hardware(), *plan.data(), *plan.work(programs), *plan.moves()),
        *(*plan.commands(), *network_tables),
    )
    return Tables(tables=tables, words=tuple(words.values), texts=bytes(texts.data), image=image)


def _summary(subject: Subject, workspace: int) -> Table:
    makespan = subject.plan.claim.makespan
    frequency = subject.problem.machine.frequency or 0
    lists = subject.lists
    row = (makespan, workspace, frequency, lists.events, SCHEMES[lists.scheme])
    return Table(layout=layouts.SUMMARY, rows=(row,))


def _network_tables(
    subject: Subject, network: Network, programs: Programs, words: Words, texts: Texts
) -> tuple[list[Table], bytes]:
    image = Image(subject, network, words, texts)
    rows = {
        layouts.PORTS: (image.ports(), []),
        layouts.SEGMENTS: (image.segments, image.segment_names),
        layouts.VALUES: (programs.values.rows, programs.values.names),
        layouts.SCALES: (programs.scales.rows, []),
        layouts.PIECES: (programs.views.pieces, []),
        layouts.VIEWS: (programs.views.rows, []),
        layouts.STEPS: (programs.steps, programs.step_names),
        layouts.ATTRIBUTES: (programs.attributes, []),
    }
    tables = [
        Table(layout=layout, rows=tuple(each), notes=tuple(notes))
        for layout, (each, notes) in rows.items()
    ]
    return tables, bytes(image.data)


ALIGNMENT = 16
"""Of segments in the image, at least; more where their memory wants more."""


class Image:
    """Makes the tables of ports and segments, and the image."""

    def __init__(self, subject: Subject, network: Network, words: Words, texts: Texts) -> None:
        self.segments: list[tuple[int, ...]] = []
        self.segment_names: list[str] = []
        self.data = bytearray()
        self._problem, self._plan = subject.problem, subject.plan
        self._subject, self._network = subject, network
        self._words, self._texts = words, texts
        self._addresses = Addresses(subject.problem, subject.plan, network)
        self._add_constants_in_dram()
        self._add_constants_on_chip()

    def ports(self) -> list[tuple[int, ...]]:
        """Return a row for each input and output of the network that lies in DRAM."""
        sides = (
            (Direction.INPUT, self._network.inputs),
            (Direction.OUTPUT, self._network.outputs),
        )
        tensors = {tensor.name: tensor for tensor in self._problem.tensors}
        return [
            self._port(direction, tensors[name])
            for direction, names in sides
            for name in names
            if name in tensors
        ]

    def _port(self, direction: Direction, tensor: DramTensor) -> tuple[int, ...]:
        known = self._network.tensors[tensor.name]
        strides = row_major_strides(tensor.shape, tensor.item)
        axes = self._addresses.axes(tensor)
        if axes:
            strides = tuple(strides[axis] for axis in inverse(axes))
        return (
            *(self._plan.tensors[tensor.index], tensor.bytes, tensor.memory, direction),
            *(type_code(known.dtype), len(known.shape), self._words.add(known.shape)),
            *(self._words.add(strides[: len(known.shape)]), tensor.index),
            self._texts.add(tensor.name),
        )

    def _add_constants_in_dram(self) -> None:
        starting = {
            buffer.place.tensor
            for buffer in self._problem.buffers
            if buffer.place is not None and buffer.starts_in is not None
        }
        for tensor in self._problem.tensors:
            if tensor.index in starting and tensor.name not in self._network.inputs:
                values = given_values(self._network, {}, tensor.name)
                axes = self._addresses.axes(tensor)
                ordered = values.transpose(axes) if axes else values
                self._add(tensor.memory, self._plan.tensors[tensor.index], tensor.name, ordered)

    def _add_constants_on_chip(self) -> None:
        for residency, of in self._starting_on_chip():
            part = self._problem.slices[of]
            buffer = self._problem.buffers[part.buffer]
            tile = self._addresses.tile(buffer)
            if tile.of in self._network.inputs:
                continue
            whole = given_values(self._network, {}, tile.of)
            values = whole[slices(tile.box, (0,) * len(tile.box))]
            inside = tuple(
                slice(start, start + extent)
                for start, extent in zip(part.start, part.extent, strict=True)
            )
            lies = self._addresses.in_memory_order(buffer, values)[inside]
            self._add(residency.memory, residency.offset, tile.of, lies)

    def _starting_on_chip(self) -> Iterator[tuple[Residency, int]]:
        """Yield what lies packed in a memory at cycle 0, and the slice that it is."""
        for residency in self._plan.residencies:
            filled = (
                residency.filled_by_task is not None or residency.filled_by_transfer is not None
            )
            if residency.slice is None or filled or self._subject.is_at_place(residency):
                continue
            yield residency, residency.slice

    def _add(
        self, memory: int, address: int, name: str, values: np.ndarray[tuple[int, ...], np.dtype]
    ) -> None:
        content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        alignment = max(ALIGNMENT, self._problem.machine.memories[memory].alignment)
        self.data += bytes(align_up(len(self.data), alignment) - len(self.data))
        self.segments.append((address, len(content), len(self.data), memory, self._texts.add(name)))
        self.segment_names.append(name)
        self.data += content
