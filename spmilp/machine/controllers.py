"""Named DMA controllers: copies that one descriptor can express, and how others are split.

A copy that one descriptor cannot hold becomes a chain of them. What no chain can express is a
defect: the checker reports it for engines that name their controller, and exports refuse it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

from spmilp.units import Bytes

Loop: TypeAlias = tuple[int, Bytes, Bytes]
"""Turns, and bytes from one turn to the next at the source and at the destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A strided copy, or the part of one that a descriptor holds.

    Parameters
    ----------
    source, destination
        Offsets of the first byte in their memories.
    run
        Contiguous bytes of each run.
    loops
        Over the runs, the outermost first.
    loads
        Whether the destination is the engine's own memory.
    """

    source: Bytes
    destination: Bytes
    run: Bytes
    loops: tuple[Loop, ...] = ()
    loads: bool = True

    @property
    def bytes(self) -> Bytes:
        """Bytes that it moves."""
        return self.run * prod(count for count, _, _ in self.loops)


def _edma(block: Block) -> bool:
    """Rows are minor loops of at most 1023 B; one signed 20-bit offset follows each of them.

    The offset is added to the source, to the destination, or to both: the gaps behind the rows are
    equal, or one of them is 0.
    """
    ((_, source, destination),) = block.loops
    gaps = {source - block.run, destination - block.run} - {0}
    fits = all(-(2**19) <= gap < 2**19 for gap in gaps)
    return block.run <= 1023 and len(gaps) <= 1 and fits


def _epiphany(block: Block) -> bool:
    """Outer strides are signed 16-bit numbers, from the last item of a row to the next row."""
    ((_, source, destination),) = block.loops
    item = item_size(block)
    jumps = (source - block.run + item, destination - block.run + item)
    return all(-(2**15) <= jump < 2**15 for jump in jumps)


def _mchan_v6(block: Block) -> bool:
    """Only the outer memory has a stride, of 16 bits; the scratchpad's side is contiguous."""
    ((_, source, destination),) = block.loops
    local, other = (destination, source) if block.loads else (source, destination)
    return local == block.run and 0 <= other < 2**16


def _mchan(block: Block) -> bool:
    """Both sides have a stride, each a word of 32 bits."""
    ((_, source, destination),) = block.loops
    return 0 <= source < 2**32 and 0 <= destination < 2**32


def _aie(block: Block) -> bool:
    """Rows of at most 255 words when there are loops; steps of at most 8192 words."""
    steps = [step for _, *both in block.loops for step in both]
    return block.run <= 255 * 4 and all(4 <= step <= 8192 * 4 for step in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Limits of one descriptor.

    Parameters
    ----------
    run, total
        Bytes of a run, and of a descriptor, at most.
    turns
        Turns at most of each loop that a descriptor has, the innermost first.
    strides_fit
        Whether a descriptor can hold the strides of a block with loops.
    granule
        Addresses, runs and strides are multiples of this.
    queue
        Descriptors that one transfer may need at most; ``None`` without limit.
    source
        Where the limits are documented.
    """

    name: str
    run: Bytes
    total: Bytes
    turns: tuple[int, ...] = ()
    strides_fit: Callable[[Block], bool] = lambda _: True
    granule: Bytes = 1
    queue: int | None = None
    source: str


CONTROLLERS: Mapping[str, Controller] = {
    each.name: each
    for each in (
        Controller(
            name="axi_dma_sg",
            run=2**26 - 1,
            total=2**26 - 1,
            source="AMD PG021 AXI DMA, scatter/gather descriptor: 26-bit length",
        ),
        Controller(
            name="edma_tcd",
            run=2**30 - 1,
            total=2**30 - 1,
            turns=(2**15 - 1,),
            strides_fit=_edma,
            source="NXP eDMA TCD; Linux drivers/dma/fsl-edma-common.h: CITER of 15 bits, MLOFF",
        ),
        Controller(
            name="mchan",
            run=2**17 - 1,
            total=2**17 - 1,
            turns=(2**17 - 1,),
            strides_fit=_mchan,
            source="pulp-platform/Deeploy TargetLibraries/PULPOpen/inc/mchan_v7.h: 17-bit length",
        ),
        Controller(
            name="mchan_v6",
            run=2**16 - 1,
            total=2**16 - 1,
            turns=(2**16 - 1,),
            strides_fit=_mchan_v6,
            source="pulp-platform/dory .../PULP/Common/Utils/mchan.h: version 6, 16-bit length",
        ),
        Controller(
            name="epiphany",
            run=2**16 - 1,
            total=2**32 - 1,
            turns=(2**16 - 1,),
            strides_fit=_epiphany,
            source="adapteva/epiphany-libs e-lib/include/e_dma.h: counts and strides of 16 bits",
        ),
        Controller(
            name="aie_bd",
            run=(2**14 - 1) * 4,
            total=(2**14 - 1) * 4,
            turns=(255, 2**14 - 1),
            strides_fit=_aie,
            granule=4,
            queue=16,
            source="docs.amd.com AM025, DMA_BD0_0 to DMA_BD0_5 of the AIE-ML memory module",
        ),
    )
}

PARTIAL = tuple(each for each in CONTROLLERS.values() if each.granule > 1 or each.queue is not None)
"""The controllers that cannot express every copy, not even by a chain of descriptors."""

MOST_DIMENSIONS = 63
"""Stands for the dimensions of an engine without limit; no copy has more."""


@lru_cache(maxsize=1 << 16)
def shape_number(copy: Block) -> int:
    """Return the dimensions of a copy, plus a bit above them for each controller that cannot.

    Solvers compare this number, less the bits that are none of an engine's business, with the
    engine's dimensions.
    """
    unable = sum(1 << number for number, each in enumerate(PARTIAL) if any(defects_of(copy, each)))
    return 1 + len(copy.loops) + (MOST_DIMENSIONS + 1) * unable


def shape_mask(controller: str | None) -> int:
    """Return the bits of a shape's number that matter to an engine with a controller."""
    own = sum(1 << number for number, each in enumerate(PARTIAL) if each.name == controller)
    return MOST_DIMENSIONS + (MOST_DIMENSIONS + 1) * own


def unit_of(controller: str | None) -> Bytes:
    """Return what addresses, runs and strides are multiples of."""
    return 1 if controller is None else CONTROLLERS[controller].granule


def blocks_of(copy: Block, controller: Controller) -> list[Block]:
    """Return the blocks, each of which a descriptor can hold, that move what a copy moves.

    As many inner loops as possible stay in a descriptor; the outer ones are written out, and what
    is too long is cut.
    """
    for depth in range(min(len(copy.loops), len(controller.turns)), 0, -1):
        outer, inner = copy.loops[:-depth], copy.loops[-depth:]
        turns = _most_turns(copy.run, inner, controller)
        kept = Block(source=0, destination=0, run=copy.run, loops=inner, loads=copy.loads)
        if turns and controller.strides_fit(kept):
            (count, step, stride), *rest = inner
            return [
                replace(
                    kept,
                    source=source + first * step,
                    destination=destination + first * stride,
                    loops=((min(turns, count - first), step, stride), *rest),
                )
                for source, destination in _starts(copy, outer)
                for first in range(0, count, turns)
            ]
    longest = min(controller.run, controller.total)
    longest -= longest % controller.granule
    return [
        Block(
            source=source + first,
            destination=destination + first,
            run=min(longest, copy.run - first),
            loads=copy.loads,
        )
        for source, destination in _starts(copy, copy.loops)
        for first in range(0, copy.run, longest)
    ]


def defects_of(copy: Block, controller: Controller) -> Iterator[str]:
    """Yield what no chain of descriptors of a controller can express; each with both numbers."""
    granule, odd = controller.granule, list(odd_numbers(copy, controller))
    for what, value in odd:
        yield (
            f"its {what} {value} B is {value % granule} modulo {granule} B, the unit of "
            f"{controller.name}"
        )
    if not odd and is_too_long(copy, controller):
        needed = len(blocks_of(copy, controller))
        yield f"it needs {needed} descriptors > {controller.queue} of {controller.name}"


def odd_numbers(copy: Block, controller: Controller) -> Iterator[tuple[str, Bytes]]:
    """Yield the addresses, the run and the strides that are no multiples of the unit."""
    numbers = [("source address", copy.source), ("destination address", copy.destination)]
    numbers.append(("run", copy.run))
    for _, source, destination in copy.loops:
        numbers += [("source stride", source), ("destination stride", destination)]
    return (pair for pair in numbers if pair[1] % controller.granule)


def is_too_long(copy: Block, controller: Controller) -> bool:
    """Say whether a copy takes more descriptors than a transfer may have."""
    return controller.queue is not None and len(blocks_of(copy, controller)) > controller.queue


def item_size(block: Block) -> Bytes:
    """Return the largest of 8, 4, 2 and 1 bytes that addresses and runs are multiples of.

    Strides follow: a loop whose strides are no multiples of it would break it, so they count too.
    """
    numbers = [block.source, block.destination, block.run]
    numbers += [step for _, *both in block.loops for step in both]
    return next(size for size in (8, 4, 2, 1) if all(n % size == 0 for n in numbers))


def _most_turns(run: Bytes, loops: Sequence[Loop], controller: Controller) -> int:
    """Return how many turns of the outermost loop a descriptor can have; 0 if not even one."""
    *_, limit = controller.turns[: len(loops)]
    counts = [count for count, _, _ in reversed(loops[1:])]
    fits = all(count <= most for count, most in zip(counts, controller.turns, strict=False))
    if run > controller.run or not fits:
        return 0
    return min(limit, controller.total // (run * prod(counts)))


def _starts(copy: Block, loops: Sequence[Loop]) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the source and the destination of the run at each turn of some loops."""
    for turn in product(*(range(count) for count, _, _ in loops)):
        steps = list(zip(turn, loops, strict=True))
        source = copy.source + sum(i * step for i, (_, step, _) in steps)
        yield source, copy.destination + sum(i * step for i, (_, _, step) in steps)
