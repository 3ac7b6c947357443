"""Problems of any size that look like tiled networks, made without a model.

An image goes through blocks of operators, as in residual and separable networks: convolutions with
halos, point-wise and depth-wise ones, joins with the block's input. Each operator's tiles share its
weights. Twice in the network the image halves its rows and doubles its channels. Some operators are
bound by computing, others (depth-wise ones, joins whose operand was evicted) by traffic. A
scratchpad cannot hold all that its core would like to keep.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import isqrt, prod
from operator import mul
from random import Random
from typing import TypeAlias

from spmilp.formats import converted
from spmilp.machine.description import MachineDescription
from spmilp.machine.expand import expand
from spmilp.machine.machine import Machine
from spmilp.problem.problem import (
    Buffer,
    BufferKind,
    DramTensor,
    Place,
    Problem,
    Slice,
    Task,
    Tile,
    whole_slice,
)
from spmilp.units import (
    Box,
    BufferIdx,
    Bytes,
    Cycles,
    Extents,
    MemoryIdx,
    SliceIdx,
    TensorIdx,
)

LAUNCH_CYCLES = 50
"""Cycles that a core needs to begin a task."""

SIDE = 16
CHANNELS = 32
TILE: Extents = (SIDE, SIDE, CHANNELS)
ELEMENTS = SIDE * SIDE * CHANNELS
"""Of a tile; each is one byte."""

DRAM: MemoryIdx = 0
"""It is the first memory of every machine made from a description."""

Position: TypeAlias = tuple[int, int, int]
"""Row, column and block of channels of a tile in its image; or how many there are."""

Part: TypeAlias = tuple[BufferIdx, Extents, Extents]
"""Start and extent of a box of a buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """A tensor of ``grid`` tiles and the buffers that hold them."""

    name: str
    grid: Position
    tiles: dict[Position, BufferIdx] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The rows that a tile reads: ``step`` tiles of them, and ``reach`` elements on each side.

    Of columns it reads its own tile's and ``reach`` on each side.
    """

    step: int
    reach: int


@dataclass(frozen=True, slots=True)
class Operand:
    """An image that an operator reads; each tile all channels of its window, or its own."""

    image: Image
    window: Window
    all_channels: bool = False


@dataclass(frozen=True, slots=True)
class _PendingTask:
    """A task whose slices have no numbers yet: there will be more buffers before them."""

    operator: str
    at: Position
    cycles: Cycles
    reads: tuple[Part, ...]
    writes: BufferIdx
    in_place: bool


class Parts:
    """Collects the parts of a problem, up to a number of tasks."""

    def __init__(self, most_tasks: int) -> None:
        self._most_tasks = most_tasks
        self._tensors: list[DramTensor] = []
        self._buffers: list[Buffer] = []
        self._pending: list[_PendingTask] = []
        self._images: list[Image] = []
        self._numbers: dict[Part, int] = {}

    @property
    def number_of_tasks(self) -> int:
        """Number of tasks so far."""
        return len(self._pending)

    def add_input(self, grid: Position) -> Image:
        """Add an image that lies in DRAM at the start."""
        image = Image("input", grid)
        shape = tuple(map(mul, grid, TILE))
        tensor = self._add_tensor(image.name, BufferKind.INPUT, shape)
        for at in _positions(grid):
            image.tiles[at] = self._add_tile(image.name, at, Place(tensor, _start(at)))
        return image

    def add_operator(
        self,
        what: str,
        grid: Position,
        operands: tuple[Operand, ...],
        *,
        cycles: Cycles,
        weights: Bytes = 0,
        in_place: bool = False,
    ) -> Image:
        """Add an operator and return the image that it makes.

        Parameters
        ----------
        cycles
            Of each tile, without the launch.
        weights
            Bytes of weights for each block of channels.
        in_place
            Whether a tile may take over the bytes of the first operand's.
        """
        image = Image(f"{what}{len(self._images)}", grid)
        self._images.append(image)
        left = self._most_tasks - self.number_of_tasks
        # Blocks of channels without a tile have no weights: tiles of one place come together.
        blocks = min(grid[2], left) if weights else 0
        weights_at = self._add_weights(f"{image.name} weights", blocks, weights) if blocks else []
        for at in islice(_positions(grid), left):
            reads = [part for operand in operands for part in _parts_read(operand, at)]
            if weights_at:
                reads.append((weights_at[at[2]], (0, 0), (1, weights)))
            image.tiles[at] = self._add_tile(image.name, at)
            new = image.tiles[at]
            pending = _PendingTask(
                image.name, at, LAUNCH_CYCLES + cycles, tuple(reads), new, in_place
            )
            self._pending.append(pending)
        return image

    def problem(self, name: str, machine: Machine) -> Problem:
        """Return everything as a problem; tiles that no task reads end in DRAM."""
        self._store_unread_tiles()
        slices = [whole_slice(buffer) for buffer in self._buffers]
        numbers = {(s.buffer, s.start, s.extent): s.index for s in slices}
        tasks = []
        for index, pending in enumerate(self._pending):
            for part in pending.reads:
                if part not in numbers:
                    numbers[part] = len(slices)
                    slices.append(_slice(len(slices), part))
            reads = tuple(numbers[part] for part in pending.reads)
            tasks.append(
                Task(
                    index=index,
                    name=f"{pending.operator} {','.join(map(str, pending.at))}",
                    cycles=(pending.cycles,),
                    reads=reads,
                    writes=(pending.writes,),
                    in_place=((reads[0], pending.writes),) if pending.in_place else (),
                    tile=Tile(of=pending.operator, box=_box(pending.at)),
                )
            )
        return Problem(
            name=name,
            machine=machine,
            tensors=tuple(self._tensors),
            buffers=tuple(self._buffers),
            slices=tuple(slices),
            tasks=tuple(tasks),
        )

    def _store_unread_tiles(self) -> None:
        read = {buffer for pending in self._pending for buffer, _, _ in pending.reads}
        for image in self._images:
            unread = [(at, tile) for at, tile in image.tiles.items() if tile not in read]
            if not unread:
                continue
            shape = tuple(map(mul, image.grid, TILE))
            tensor = self._add_tensor(image.name, BufferKind.OUTPUT, shape)
            for at, tile in unread:
                self._buffers[tile] = replace(
                    self._buffers[tile],
                    kind=BufferKind.OUTPUT,
                    ends_in=DRAM,
                    place=Place(tensor, _start(at)),
                )

    def _add_tensor(self, name: str, kind: BufferKind, shape: Extents) -> TensorIdx:
        index = len(self._tensors)
        self._tensors.append(
            DramTensor(index=index, name=name, kind=kind, memory=DRAM, shape=shape, item=1)
        )
        return index

    def _add_tile(self, of: str, at: Position, place: Place | None = None) -> BufferIdx:
        index = len(self._buffers)
        self._buffers.append(
            Buffer(
                index=index,
                name=of,
                kind=BufferKind.INTERMEDIATE if place is None else BufferKind.INPUT,
                shape=TILE,
                starts_in=None if place is None else DRAM,
                place=place,
                tile=Tile(of=of, box=_box(at)),
            )
        )
        return index

    def _add_weights(self, of: str, blocks: int, size: Bytes) -> list[BufferIdx]:
        tensor = self._add_tensor(of, BufferKind.WEIGHT, (blocks, size))
        first = len(self._buffers)
        self._buffers += [
            Buffer(
                index=first + block,
                name=of,
                kind=BufferKind.WEIGHT,
                shape=(1, size),
                starts_in=DRAM,
                place=Place(tensor, (block, 0)),
                tile=Tile(of=of, box=((block, block + 1), (0, size))),
            )
            for block in range(blocks)
        ]
        return list(range(first, first + blocks))


def _positions(grid: Position) -> Iterator[Position]:
    """Yield the tiles of a grid, the blocks of channels of one place together."""
    rows, columns, blocks = map(range, grid)
    return product(rows, columns, blocks)


def _parts_read(operand: Operand, at: Position) -> Iterator[Part]:
    """Yield what one tile reads of an operand: whole tiles, and edges of those around them."""
    row, column, block = at
    rows, columns, blocks = operand.image.grid
    window = operand.window
    first = window.step * row
    along_rows = list(_spans(first, first + window.step, window.reach, rows))
    along_columns = list(_spans(column, column + 1, window.reach, columns))
    for tile_row, (top, height) in along_rows:
        for tile_column, (left, width) in along_columns:
            for channels in range(blocks) if operand.all_channels else (block,):
                buffer = operand.image.tiles[tile_row, tile_column, channels]
                yield buffer, (top, left, 0), (height, width, CHANNELS)


def _spans(first: int, end: int, reach: int, tiles: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each tile along an axis with the begin and the length of what is read of it."""
    if reach and first > 0:
        yield first - 1, (SIDE - reach, reach)
    for tile in range(first, min(end, tiles)):
        yield tile, (0, SIDE)
    if reach and end < tiles:
        yield end, (0, reach)


def _slice(index: SliceIdx, part: Part) -> Slice:
    buffer, start, extent = part
    return Slice(index=index, buffer=buffer, start=start, extent=extent, bytes=prod(extent))


def _start(at: Position) -> Extents:
    return tuple(map(mul, at, TILE))


def _box(at: Position) -> Box:
    return tuple((first, first + side) for first, side in zip(_start(at), TILE, strict=True))


MACS_PER_CYCLE = 256
LANES = 64
SCRATCHPAD: Bytes = 128 * 1024
TILES_OF_A_CORE = 4
FEWEST_OPERATORS, MOST_OPERATORS = 8, 128
"""With fewer or more by the tiles of a core, operators have fewer or more tiles instead."""

BLOCKS = (
    ("point", "conv", "point", "join"),
    ("point", "depth", "point", "join"),
    ("conv", "conv", "join"),
    ("depth", "point"),
)
STAGES = 3

WHOLE = Window(step=1, reach=0)
AROUND = Window(step=1, reach=1)
HALVING = Window(step=2, reach=1)


def generated_problem(tasks: int, cores: int, seed: int = 0) -> Problem:
    """Return a tiled network of exactly this many tasks on a mesh of this many cores.

    The last operator makes as many tiles as are left; tiles that no task reads end in DRAM.

    Parameters
    ----------
    seed
        Chooses the blocks and how well each operator uses a core's multipliers; the same arguments
        give the same problem.

    Raises
    ------
    ValueError
        If there is no task or no core.
    """
    if tasks < 1:
        raise ValueError(f"a problem of {tasks} tasks, expected 1 or more")
    machine = generated_mesh(cores, SCRATCHPAD)
    tiles = max(TILES_OF_A_CORE * cores, tasks // MOST_OPERATORS)
    network = _Network(Random(seed), tasks, max(1, min(tiles, tasks // FEWEST_OPERATORS)))
    while network.parts.number_of_tasks < tasks:
        network.add_block()
    name = f"generated {tasks} tasks, {cores} cores, seed {seed}"
    return network.parts.problem(name, machine)


class _Network:
    """Adds operators until there are enough tasks; what comes after them is left away."""

    def __init__(self, random: Random, tasks: int, tiles: int) -> None:
        self.parts = Parts(tasks)
        self._random = random
        self._tasks = tasks
        self._stage = 0
        rows = isqrt(tiles)
        self._image = self.parts.add_input((rows, -(-tiles // rows), 1))

    def add_block(self) -> None:
        """Add a block of operators, behind one that halves the rows where a stage begins."""
        stage = STAGES * self.parts.number_of_tasks // self._tasks
        if stage > self._stage:
            self._stage = stage
            rows, columns, blocks = self._image.grid
            self._convolve("conv", (-(-rows // 2), columns, 2 * blocks), HALVING, 9)
        shortcut = self._image
        for what in self._random.choice(BLOCKS):
            if what == "join":
                self._join(shortcut)
            elif what == "depth":
                self._depth_wise()
            else:
                window, taps = (AROUND, 9) if what == "conv" else (WHOLE, 1)
                self._convolve(what, self._image.grid, window, taps)

    def _convolve(self, what: str, grid: Position, window: Window, taps: int) -> None:
        """Each tile reads all channels of its window."""
        channels = self._image.grid[2] * CHANNELS
        utilisation = self._random.uniform(0.6, 1.0)
        self._image = self.parts.add_operator(
            what,
            grid,
            (Operand(self._image, window, all_channels=True),),
            weights=channels * CHANNELS * taps,
            cycles=round(ELEMENTS * channels * taps / (MACS_PER_CYCLE * utilisation)),
        )

    def _depth_wise(self) -> None:
        """Each tile reads its own channels of its window."""
        self._image = self.parts.add_operator(
            "depth",
            self._image.grid,
            (Operand(self._image, AROUND),),
            weights=CHANNELS * 9,
            cycles=ELEMENTS * 9 // LANES,
        )

    def _join(self, shortcut: Image) -> None:
        """Each tile is the sum of two, and may lie where one of them lay."""
        self._image = self.parts.add_operator(
            "join",
            self._image.grid,
            (Operand(self._image, WHOLE), Operand(shortcut, WHOLE)),
            cycles=ELEMENTS // LANES,
            in_place=True,
        )


def generated_mesh(cores: int, scratchpad: Bytes) -> Machine:
    """Return a mesh, as square as its number of cores allows, whose west edge is DRAM ports.

    So the bandwidth of DRAM grows with the edge and computing with the area, as on a chip: four
    cores have 16 B/cycle each, a thousand have 1 B/cycle. Each scratchpad has a DMA engine of four
    channels that loads from DRAM and from any other scratchpad.

    Parameters
    ----------
    scratchpad
        Bytes of each core's memory.

    Raises
    ------
    ValueError
        If there is no core.
    """
    if cores < 1:
        raise ValueError(f"a mesh of {cores} cores, expected 1 or more")
    rows = next(rows for rows in range(isqrt(cores), 0, -1) if cores % rows == 0)
    content = {
        "name": f"generated{cores // rows}x{rows}",
        "description": "A mesh of a generated problem; no real chip.",
        "topology": {
            "type": "mesh",
            "columns": cores // rows,
            "rows": rows,
            "rate_bytes_per_cycle": 32,
            "latency_cycles": 1,
        },
        "core_kinds": {
            "core": {
                "arrays": [{"dtype": "int8", "K": 16, "C": MACS_PER_CYCLE // 16}],
                "lanes": {"int8": LANES},
                "launch_cycles": LAUNCH_CYCLES,
            }
        },
        "scratchpads": [
            {
                "cores": {"core": 1},
                "size_bytes": scratchpad,
                "alignment_bytes": 64,
                "dma": [
                    {
                        "channels": 4,
                        "setup_cycles": 20,
                        "rate_bytes_per_cycle": 16,
                        "dimensions": 4,
                    }
                ],
            }
        ],
        "dram": [
            {
                "sites": ["r_0_*"],
                "rate_bytes_per_cycle": 32,
                "latency_cycles": 50,
                "alignment_bytes": 64,
            }
        ],
    }
    return expand(converted(content, MachineDescription))
