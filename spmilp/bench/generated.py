"""Problems of any size that look like tiled networks, made without a model.

An image goes through blocks of operators, as in residual and separable networks: convolutions with
halos, point-wise and depth-wise ones, joins with the block's input. Each operator's tiles share its
weights. Twice in the network the image halves its rows and doubles its channels. Some operators are
bound by computing, others (depth-wise ones, joins whose operand was evicted) by traffic. A
scratchpad cannot hold all that its core would like to keep.
"""

from math import isqrt
from random import Random

from spmilp.bench.generated_parts import (
    CHANNELS,
    ELEMENTS,
    LAUNCH_CYCLES,
    Image,
    Operand,
    Parts,
    Position,
    Window,
)
from spmilp.machine.description import MachineDescription
from spmilp.machine.expand import expand
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.units import Bytes

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
    return expand(MachineDescription.model_validate(content))
