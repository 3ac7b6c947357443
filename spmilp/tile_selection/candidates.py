"""Candidate tilings of a group: where their tiles run, and what they read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.cached import Cache, cached
from spmilp.errors import DoesNotFitError, Shortage
from spmilp.lowering.cost import cannot_run
from spmilp.lowering.limits import dma_limits
from spmilp.lowering.rates import MachineRates, usable_bytes
from spmilp.lowering.tiling import TileGrid, Tiling, box_name
from spmilp.machine.machine import Machine
from spmilp.tile_selection.group_model import (
    Footprint,
    GroupModel,
    Reads,
    TileShrinker,
    tiles_of,
    volumes,
)
from spmilp.units import Bytes, CoreIdx, Cycles, MemoryIdx

TILES_PER_CORE = (1, 2, 4)
SHORT = 4
"""Tasks are short that compute less than so many times as long as it takes to launch one and to set
up a transfer."""

MOST_TIMES = 8
"""Tilings of so many times the tasks that memory forces are not considered."""

SLACK_PIECES = 8
"""Alignment padding to leave free, in pieces: an operand may consist of several."""

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tiling whose tiles fit.

    Parameters
    ----------
    cycles
        Of the largest tile on each kind of core; ``None`` where it cannot run.
    cores
        The cores that can run its tiles and whose memories hold the largest one.
    """

    tiling: Tiling
    grid: TileGrid
    footprint: Footprint
    cycles: tuple[Cycles | None, ...]
    cores: tuple[CoreIdx, ...]

    @property
    def tasks(self) -> int:
        """Tiles times parts of the reduction."""
        return self.grid.cells * len(self.grid.parts)

    @property
    def split_axes(self) -> tuple[int, ...]:
        """The axes of the output that it cuts."""
        return tuple(axis for axis, count in enumerate(self.grid.counts) if count > 1)


class CandidateMaker:
    """Makes the candidate tilings of groups for one machine.

    The strategies are SMAUG's (Xi et al., ACM TACO 17(4), 2020): no cut, or cuts along the batch
    and at most two further axes of the output, so for convolutions N, C, H, W, CH, CW and HW with
    or without N. They make 1, 2 and 4 tiles per core, or fewer where the axes are short, or one for
    each of a part of the cores where tasks would be short. Where tiles are too large for a
    scratchpad, the axes (and, as alternatives, the reduction too, or it alone) that shrink the
    working set most are cut further: until a tile fits, until one fits beside what lies there for
    each core that shares the memory, and until the next task's data can be fetched during a task.

    What was found out about a group is remembered: other rooms lead to many of the same tilings.
    """

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._machine = machine
        self._slack = SLACK_PIECES * rates.alignment
        self._sharers = max(rates.sharers)
        self._aggregate = rates.aggregate
        self._dma = dma_limits(machine)
        self._shrinkers: dict[GroupModel, list[tuple[TileShrinker, TileShrinker]]] = {}
        self.cache = Cache()

    def candidates(
        self,
        model: GroupModel,
        live: Bytes,
        room: float = 1.0,
        cores: float = 1.0,
        go_on: Callable[[], None] = lambda: None,
    ) -> tuple[Candidate, ...]:
        """Return the candidates of one group, each grid once.

        Parameters
        ----------
        live
            Bytes that lie in scratchpads while the group runs.
        room
            The part of each memory that a working set may take, where there are tiles as small.
        cores
            The part of the cores that there are tiles for, where they would be short on all.
        go_on
            Called with each tiling; what it raises passes on.

        Raises
        ------
        SpmilpError
            If no kind of core can run the group.
        DoesNotFitError
            If even the smallest tile exceeds the memory of every core that can run the group.
        """
        machine, able = self._machine, self._able(model)
        if not able:
            raise cannot_run(model.group, model.dtype, machine.kinds)
        sizes = sorted({self._usable(core) for core in able})
        fitting: dict[Tiling, None] = {}
        limits = self._limits(sizes, live, room)
        numbers = self._numbers_of_tiles(model, len(able), cores)
        counts = _base_counts(model, numbers)
        starts = [Tiling(counts=each) for each in counts]
        if model not in self._shrinkers:
            self._shrinkers[model] = list(_shrinkers(model))
        for shrinkers in self._shrinkers[model]:
            for limit, with_next in limits:
                for tiling in starts:
                    go_on()
                    found = shrinkers[with_next].until_it_fits(tiling, limit)
                    if found is not None:
                        fitting[found] = None
        if not fitting:
            # Tiles that fit a memory if nothing is left free in it.
            least = (TileShrinker(model, splits, model.least_bytes) for splits in (False, True))
            found_all = (one.until_it_fits(model.uncut, sizes[-1]) for one in least)
            largest = next(filter(None, found_all), None)
            if largest is None:
                raise self._nothing_fits(model, able)
            fitting[largest] = None
        by_grid: dict[TileGrid, Candidate] = {}
        for tiling in fitting:
            candidate = self.candidate(model, tiling)
            by_grid.setdefault(candidate.grid, candidate)
        movable = self._movable(model, tuple(by_grid.values()))
        return self._sensible(movable, len(able), sizes[-1] // self._sharers)

    def _able(self, model: GroupModel) -> tuple[CoreIdx, ...]:
        """Return the cores that can run a group."""
        return tuple(core.index for core in self._machine.cores if model.able_kinds[core.kind])

    def _usable(self, core: CoreIdx) -> Bytes:
        return usable_bytes(self._machine, self._machine.cores[core])

    def _numbers_of_tiles(self, model: GroupModel, cores: int, part: float) -> list[int]:
        """Return how many tiles to make, where they fit."""
        if part < 1 and self._are_short(model, cores):
            return sorted({1, max(1, int(part * cores))})
        return sorted({1, *(cores * each for each in TILES_PER_CORE)})

    def _are_short(self, model: GroupModel, cores: int) -> bool:
        """Return whether tasks are short when each core has one."""
        begins = min((engine.setup for engine in self._machine.engines), default=0)
        return all(
            cycles is None or cycles < cores * SHORT * (kind.launch + begins)
            for cycles, kind in zip(
                model.cycles(model.grid(model.uncut)), self._machine.kinds, strict=True
            )
        )

    def _movable(self, model: GroupModel, found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Drop tilings whose tiles some controller cannot move for its unit, unless all are such.

        What tiles touch is looked at where they begin along each axis and end.
        """
        if not self._dma.controllers:
            return found
        able = (
            one
            for one in found
            if all(self._dma.is_in_units(*each) for each in model.touched(one.grid))
        )
        return tuple(able) or found

    def _sensible(
        self, found: tuple[Candidate, ...], cores: int, share: Bytes
    ) -> tuple[Candidate, ...]:
        """Drop tilings of many more tasks than memory forces, or a core's share of it."""
        fewest = min(one.tasks for one in found)
        in_share = [one.tasks for one in found if one.footprint.bytes <= share]
        most = max(MOST_TIMES * fewest, max(TILES_PER_CORE) * cores, min(in_share, default=0))
        return tuple(one for one in found if one.tasks <= most)

    def _limits(self, sizes: Sequence[Bytes], live: Bytes, room: float) -> list[tuple[Bytes, bool]]:
        """Return the bytes that a tile may take, and whether that includes what comes for the next.

        The room in a memory; a core's share of it without what lies there; the same for both.
        """

        def less_padding(size: Bytes) -> Bytes:
            return size - min(self._slack, size // 16)

        left = 1 - min(0.9, live / self._aggregate)
        limits = set()
        for size in {int(room * sizes[0]), int(room * sizes[-1])}:
            share = int(size // self._sharers * left)
            limits |= {(less_padding(one), False) for one in (size, share)}
            limits.add((2 * less_padding(share // 2), True))
        return sorted(limits, reverse=True)

    @cached
    def candidate(self, model: GroupModel, tiling: Tiling) -> Candidate:
        """Return a tiling as a candidate, on all cores that can run it where it fits none."""
        grid, footprint = model.grid(tiling), model.footprint(tiling)
        able = self._able(model)
        for size in (footprint.bytes, model.least_bytes(tiling), 0):
            cores = tuple(core for core in able if size <= self._usable(core))
            if cores:
                break
        return Candidate(
            tiling=tiling, grid=grid, footprint=footprint, cycles=model.cycles(grid), cores=cores
        )

    def _nothing_fits(self, model: GroupModel, able: Sequence[CoreIdx]) -> DoesNotFitError:
        box, tiling = model.smallest()
        parts, needed = model.least_parts(tiling), model.least_bytes(tiling)
        largest = max(able, key=self._usable)
        memory = self._machine.memories[self._machine.cores[largest].memory].name
        capacity = self._usable(largest)
        operands = ", ".join(f"{name} {size} B" for name, size in parts if size)
        short = Shortage(
            what=f"group {model.group.name}",
            memory=memory,
            needed=needed,
            usable=capacity,
            parts=parts,
        )
        return DoesNotFitError(
            f"group {model.group.name}: its smallest tile, "
            f"{box_name(model.group.output, box, model.shape)}, needs {needed} B "
            f"({operands}), but {memory}, the largest memory "
            f"of a core that can run it, holds {capacity} B: {needed - capacity} B over; use "
            "a machine with larger scratchpads, a smaller data type, or a model with smaller "
            "dimensions",
            short,
        )


def _shrinkers(model: GroupModel) -> Iterator[tuple[TileShrinker, TileShrinker]]:
    """Yield, for each choice of what is cut, one that counts working sets and one with the next.

    Cut are the tiles, tiles and the reduction, or the reduction alone: results then stay where they
    are added up, in as many tiles as there were, and operands stream past.
    """

    def with_next(tiling: Tiling) -> Bytes:
        return model.footprint(tiling).with_next

    for reduction, axes in ((False, None), (True, None), (True, ())):
        yield (
            TileShrinker(model, reduction, axes=axes),
            TileShrinker(model, reduction, with_next, axes=axes),
        )


def _base_counts(model: GroupModel, numbers: Iterable[int]) -> Iterable[Counts]:
    """Return the tiles along each axis of every strategy and number of tiles."""
    batch = tuple(axis for axis in model.axes_to_cut if axis == 0 and len(model.shape) > 2)
    others = [axis for axis in model.axes_to_cut if axis not in batch]
    found: dict[Counts, None] = {}
    for tiles in numbers:
        for size in range(min(2, len(others)) + 1):
            for chosen in combinations(others, size):
                for prefix in {(), batch}:
                    found |= dict.fromkeys(_factorised(tiles, (*prefix, *chosen), model.shape))
    return found


def _factorised(tiles: int, axes: Counts, shape: Counts) -> Iterator[Counts]:
    """Yield the ways to cut all of some axes into ``tiles`` tiles in all, or as many as there are.

    With one axis, a short one is cut into single positions.
    """
    if not axes:
        if tiles == 1:
            yield (1,) * len(shape)
        return
    first, rest = axes[0], axes[1:]
    if not rest:
        if tiles > 1:
            yield _with(first, min(tiles, shape[first]), (1,) * len(shape))
        return
    for factor in range(min(tiles, shape[first]), 1, -1):
        if tiles % factor == 0:
            for counts in _factorised(tiles // factor, rest, shape):
                yield _with(first, factor, counts)


def _with(axis: int, count: int, counts: Counts) -> Counts:
    return (*counts[:axis], count, *counts[axis + 1 :])


Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Tile ``i`` of ``n`` runs on core ``floor(i * cores / n)`` of those that can.

    These are blocks of successive tiles, at proportional places for successive groups.

    Parameters
    ----------
    memories
        The memory in which each tile is computed.
    used
        The cores that have a tile, as positions among those that can run it, sorted.
    homes
        The memories of the used cores.
    tiles_per_core
        The number of tiles on each of the used cores.
    givers
        The memories of the used cores, each once, sorted.
    """

    memories: Ints
    used: Ints
    homes: Ints
    tiles_per_core: Ints
    givers: Ints


@lru_cache(maxsize=1 << 12)
def placement_of(homes: Sequence[MemoryIdx], tiles: int) -> Placement:
    """Return where so many tiles run on cores that work in these memories.

    It is the same object for the same arguments, as a rule, and stands for them in keys.
    """
    of_cores = np.array(homes, dtype=np.int64)
    positions = np.arange(tiles) * len(homes) // tiles
    used, tiles_per_core = np.unique(positions, return_counts=True)
    memories = of_cores[positions]
    return Placement(
        memories=memories,
        used=used,
        homes=of_cores[used],
        tiles_per_core=tiles_per_core,
        givers=np.unique(of_cores[used]),
    )


@dataclass(frozen=True, eq=False)
class Profile:
    """A candidate with the reads of its tiles, and the cores where they would run.

    Parameters
    ----------
    reads
        What each tile reads of each input, by the input's position in ``Group.inputs``.
    items
        Bytes of an element of each input.
    streamed
        Inputs of which each part of the reduction reads another piece.
    """

    candidate: Candidate
    placement: Placement
    reads: Mapping[int, Reads]
    items: Sequence[Bytes]
    streamed: frozenset[int]

    @classmethod
    def of(cls, model: GroupModel, candidate: Candidate, homes: Sequence[MemoryIdx]) -> "Profile":
        """Return the profile of one candidate tiling.

        Parameters
        ----------
        homes
            The memory in which each core works, by core.
        """
        position = {name: number for number, name in enumerate(model.group.inputs)}
        own = tuple(homes[core] for core in candidate.cores)
        drivers = model.drivers.items()
        return cls(
            candidate=candidate,
            placement=placement_of(own, candidate.grid.cells),
            reads={position[name]: boxes for name, boxes in model.reads(candidate.grid).items()},
            items=model.input_items,
            streamed=frozenset(position[name] for name, axes in drivers if -1 in axes.values()),
        )

    @property
    def tiles(self) -> int:
        """The number of output tiles."""
        return self.candidate.grid.cells

    @property
    def parts(self) -> int:
        """Parts of the reduction: tasks of each tile."""
        return len(self.candidate.grid.parts)

    def pieces_of(self, number: int) -> int:
        """Return in how many pieces a tile reads an input, one after another."""
        return self.parts if number in self.streamed else 1

    @cached_property
    def volumes(self) -> Floats:
        """The number of elements of each output tile."""
        return volumes(tiles_of(self.candidate.grid))

    @cached_property
    def tiles_key(self) -> bytes:
        """The same for equal output tiles."""
        return repr(self.candidate.grid.axes).encode()

    @cached_property
    def mean_share(self) -> float:
        """The mean size of the tiles on one core, as a part of the largest tile."""
        if self.tiles <= len(self.candidate.cores):
            return 1.0
        lengths = [[stop - start for start, stop in axis] for axis in self.candidate.grid.axes]
        mean = prod(map(sum, lengths)) / self.tiles
        return (1.0 + mean / prod(map(max, lengths))) / 2
