"""The tasks of a tiled group: what each reads and what it computes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.family import Work
from spmilp.lowering.groups import Computation, reduction_length
from spmilp.lowering.tiling import Interval, TileGrid, Tiling, tile_grid
from spmilp.units import Box


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTask:
    """One task of a group.

    Parameters
    ----------
    box
        The tile of the group's output.
    part
        Position in ``TileGrid.parts``.
    reads
        The box that it reads of each of the group's inputs; inputs of which it reads nothing are
        left out.
    """

    box: Box
    part: int
    reads: Mapping[str, Box]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledGroup:
    """A group and its tasks: tile by tile in row-major order, the parts of a tile in sequence.

    Parameters
    ----------
    length
        Of the reduction that ``grid.parts`` splits.
    waves
        Parts of the first axis that are computed one after another; see :class:`Tiling`.
    """

    group: Group
    grid: TileGrid
    length: int
    waves: int
    tasks: tuple[TileTask, ...]

    def tasks_of_wave(self, wave: int) -> Iterator[TileTask]:
        """Yield the tasks whose tiles begin in one part of the first axis."""
        if self.waves == 1:
            yield from self.tasks
            return
        length = self.grid.axes[0][-1][1]
        for task in self.tasks:
            if task.box[0][0] * self.waves // length == wave:
                yield task

    def reduction_of(self, task: TileTask) -> Interval | None:
        """Return the part of the reduction that a task covers; ``None`` for all of it."""
        return self.grid.parts[task.part] if len(self.grid.parts) > 1 else None

    def summed_before(self, task: TileTask) -> Interval:
        """Return the part of the reduction that the partial sum before a task covers."""
        return 0, self.grid.parts[task.part][0]

    def summed_after(self, task: TileTask) -> Interval:
        """Return the part of the reduction that the partial sum after a task covers."""
        return 0, self.grid.parts[task.part][1]

    def is_last(self, task: TileTask) -> bool:
        """Say whether a task finishes its tile."""
        return task.part == len(self.grid.parts) - 1


def tile_group(network: Network, group: Group, tiling: Tiling) -> TiledGroup:
    """Cut a group into tasks.

    Raises
    ------
    SpmilpError
        If the tiling does not fit the group's output.
    """
    length = reduction_length(network, group)
    try:
        grid = tile_grid(tiling, network.tensors[group.output].shape, length)
    except ValueError as error:
        raise SpmilpError(f"group {group.name}: {error}") from error
    computation = Computation(network, group, length)
    tasks = tuple(
        TileTask(
            box=box,
            part=number,
            reads=computation.reads(box, part),
            work=computation.work(box, part),
        )
        for box in grid.boxes()
        for number, part in enumerate(grid.parts)
    )
    return TiledGroup(group=group, grid=grid, length=length, waves=tiling.waves, tasks=tasks)
