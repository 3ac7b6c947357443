"""The tasks of a problem, made from tiled groups."""

from collections.abc import Iterator, Sequence

from spmilp.frontend.graph import Network
from spmilp.lowering.cost import CostModel, cannot_run
from spmilp.lowering.groups import overwritable_inputs
from spmilp.lowering.names import box_name
from spmilp.lowering.slices import Piece, SliceTable
from spmilp.lowering.storage import Storage, Stored
from spmilp.lowering.tiles import TiledGroup, TileTask
from spmilp.problem.problem import Task, Tile
from spmilp.units import Box, BufferIdx, SliceIdx


class TaskMaker:
    """Makes the tasks of one group after another."""

    def __init__(
        self, network: Network, costs: CostModel, storage: Storage, slices: SliceTable
    ) -> None:
        self._network = network
        self._costs = costs
        self._storage = storage
        self._slices = slices

    def tasks(self, group: TiledGroup, wave: int, first: int) -> Iterator[Task]:
        """Yield the tasks of one wave of a group, numbered from ``first``.

        Raises
        ------
        SpmilpError
            If no kind of core can run the group.
        """
        overwritable = self._overwritable(group)
        for number, task in enumerate(group.tasks_of_wave(wave), start=first):
            yield self._task(group, task, number, overwritable)

    def _task(
        self, group: TiledGroup, task: TileTask, number: int, overwritable: frozenset[str]
    ) -> Task:
        part = group.reduction_of(task)
        result = self._result(group, task)
        written = {cell: result.first + k for k, cell, _ in result.grid.overlapping(task.box)}
        reads: list[SliceIdx] = []
        in_place: list[tuple[SliceIdx, BufferIdx]] = []
        for stored, box in self._operands(group, task):
            pieces = self._slices.covering(stored, box)
            reads += (piece.index for piece in pieces)
            adds_up = stored.value.reduction is not None
            if (adds_up and stored.value.item == result.value.item) or (
                stored.value.of in overwritable
            ):
                in_place += _pairs(pieces, written)
        name = box_name(group.group.name, task.box, self._shape(group))
        return Task(
            index=number,
            name=name if part is None else f"{name}/{part[0]}:{part[1]}",
            cycles=self._cycles(group, task),
            reads=tuple(dict.fromkeys(reads)),
            writes=tuple(written.values()),
            in_place=tuple(in_place),
            energy=self._costs.energy(group.group, task.work),
            tile=Tile(of=group.group.name, box=task.box, reduction=part),
        )

    def _operands(self, group: TiledGroup, task: TileTask) -> Iterator[tuple[Stored, Box]]:
        """Yield what a task reads: its operands, then the partial sum before it."""
        for name, box in task.reads.items():
            yield self._storage.find(name), box
        if task.part > 0:
            yield self._storage.find(group.group.name, group.summed_before(task)), task.box

    def _result(self, group: TiledGroup, task: TileTask) -> Stored:
        if group.is_last(task):
            return self._storage.find(group.group.output)
        return self._storage.find(group.group.name, group.summed_after(task))

    def _overwritable(self, group: TiledGroup) -> frozenset[str]:
        """Return the operands that may share their bytes with the group's output."""
        result = self._storage.find(group.group.output).value
        tensors = self._network.tensors
        return frozenset(
            name
            for name in overwritable_inputs(self._network, group.group)
            if tensors[name].dtype == tensors[group.group.output].dtype
            and self._storage.find(name).value.axes == result.axes
        )

    def _cycles(self, group: TiledGroup, task: TileTask) -> tuple[int | None, ...]:
        part = group.reduction_of(task)
        cycles = self._costs.cycles(group.group, task.box, part, task.work)
        if all(count is None for count in cycles):
            raise cannot_run(group.group, task.work.dtype, self._costs.kinds)
        return cycles

    def _shape(self, group: TiledGroup) -> tuple[int, ...]:
        return self._network.tensors[group.group.output].shape


def _pairs(
    pieces: Sequence[Piece], written: dict[Box, BufferIdx]
) -> Iterator[tuple[SliceIdx, BufferIdx]]:
    """Yield the whole buffers read that are the same boxes as buffers written."""
    for piece in pieces:
        if piece.whole is not None and piece.whole in written:
            yield piece.index, written[piece.whole]
