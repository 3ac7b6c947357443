"""Named DMA controllers, and the copies that none of their chains of descriptors can express.

A copy that one descriptor cannot hold becomes a chain of them. What no chain can express is a
defect: the checker reports it for engines that name their controller.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

from spmilp.units import Bytes

Loop: TypeAlias = tuple[int, Bytes, Bytes]
"""Turns, and bytes from one turn to the next at the source and at the destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedCopy:
    """Runs of contiguous bytes at regular distances on both sides.

    ``source`` and ``destination`` are offsets of the first byte in their memories, ``run`` the
    bytes of each run. Loops go over the runs, the outermost first, each of more than one turn.
    """

    source: Bytes = 0
    destination: Bytes = 0
    run: Bytes
    loops: tuple[Loop, ...] = ()

    @property
    def bytes(self) -> Bytes:
        """Bytes that it moves."""
        return self.run * prod(count for count, _, _ in self.loops)

    @property
    def dimensions(self) -> int:
        """Nested strides that a descriptor needs, the run included."""
        return 1 + len(self.loops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Limits of one descriptor, where they matter: chains without limits express any copy.

    A descriptor has at most ``total`` bytes, so many turns of each of its loops, the innermost
    first, and, with loops, so many bytes of a run as a ``row``. Addresses, runs and strides are
    multiples of the granule; in a descriptor, strides are at most 8192 times as much. One transfer
    may need as many descriptors as the queue has; ``None`` without limit.
    """

    name: str
    total: Bytes = 1 << 62
    turns: tuple[int, ...] = ()
    row: Bytes = 1 << 62
    granule: Bytes = 1
    queue: int | None = None


CONTROLLERS: Mapping[str, Controller] = {
    each.name: each
    for each in (
        # AMD PG021 AXI DMA, scatter/gather
        Controller(name="axi_dma_sg"),
        # NXP eDMA TCD; Linux drivers/dma/fsl-edma-common.h
        Controller(name="edma_tcd"),
        # pulp-platform/Deeploy TargetLibraries/PULPOpen/inc/mchan_v7.h
        Controller(name="mchan"),
        # pulp-platform/dory .../PULP/Common/Utils/mchan.h, version 6
        Controller(name="mchan_v6"),
        # adapteva/epiphany-libs e-lib/include/e_dma.h
        Controller(name="epiphany"),
        # docs.amd.com AM025, DMA_BD0_0 to DMA_BD0_5 of the AIE-ML memory module
        Controller(
            name="aie_bd",
            total=(2**14 - 1) * 4,
            turns=(255, 2**14 - 1),
            row=255 * 4,
            granule=4,
            queue=16,
        ),
    )
}

PARTIAL = tuple(each for each in CONTROLLERS.values() if each.granule > 1 or each.queue is not None)
"""The controllers that cannot express every copy, not even by a chain of descriptors."""

MOST_DIMENSIONS = 63
"""Stands for the dimensions of an engine without limit; no copy has more."""


@lru_cache(maxsize=1 << 16)
def shape_number(copy: StridedCopy) -> int:
    """Return the dimensions of a copy, plus a bit above them for each controller that cannot.

    Solvers compare this number, less the bits that are none of an engine's business, with the
    engine's dimensions.
    """
    unable = sum(1 << number for number, each in enumerate(PARTIAL) if any(defects_of(copy, each)))
    return copy.dimensions + (MOST_DIMENSIONS + 1) * unable


def shape_mask(controller: str | None) -> int:
    """Return the bits of a shape's number that matter to an engine with a controller."""
    own = sum(1 << number for number, each in enumerate(PARTIAL) if each.name == controller)
    return MOST_DIMENSIONS + (MOST_DIMENSIONS + 1) * own


def unit_of(controller: str | None) -> Bytes:
    """Return what addresses, runs and strides are multiples of."""
    return 1 if controller is None else CONTROLLERS[controller].granule


def blocks_of(copy: StridedCopy, controller: Controller) -> list[StridedCopy]:
    """Return the blocks, each of which a descriptor can hold, that move what a copy moves.

    As many inner loops as possible stay in a descriptor; the outer ones are written out, and what
    is too long is cut.
    """
    for depth in range(min(len(copy.loops), len(controller.turns)), 0, -1):
        outer, inner = copy.loops[:-depth], copy.loops[-depth:]
        turns = _most_turns(copy.run, inner, controller)
        if turns:
            (count, step, stride), *rest = inner
            return [
                replace(
                    copy,
                    source=source + first * step,
                    destination=destination + first * stride,
                    loops=((min(turns, count - first), step, stride), *rest),
                )
                for source, destination in starts_of_runs(copy, outer)
                for first in range(0, count, turns)
            ]
    return [
        replace(
            copy,
            source=source + first,
            destination=destination + first,
            run=min(controller.total, copy.run - first),
            loops=(),
        )
        for source, destination in starts_of_runs(copy, copy.loops)
        for first in range(0, copy.run, controller.total)
    ]


def defects_of(copy: StridedCopy, controller: Controller) -> Iterator[str]:
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


def odd_numbers(copy: StridedCopy, controller: Controller) -> Iterator[tuple[str, Bytes]]:
    """Yield the addresses, the run and the strides that are no multiples of the unit."""
    numbers = [("source address", copy.source), ("destination address", copy.destination)]
    numbers.append(("run", copy.run))
    for _, source, destination in copy.loops:
        numbers += [("source stride", source), ("destination stride", destination)]
    return (pair for pair in numbers if pair[1] % controller.granule)


def is_too_long(copy: StridedCopy, controller: Controller) -> bool:
    """Say whether a copy takes more descriptors than a transfer may have."""
    return controller.queue is not None and len(blocks_of(copy, controller)) > controller.queue


def _most_turns(run: Bytes, loops: Sequence[Loop], controller: Controller) -> int:
    """Return how many turns of the outermost loop a descriptor can have; 0 if not even one."""
    *inner_limits, limit = controller.turns[: len(loops)]
    counts = [count for count, _, _ in reversed(loops[1:])]
    fit = all(count <= most for count, most in zip(counts, inner_limits, strict=True))
    steps = [step for _, *both in loops for step in both]
    granule = controller.granule
    if run > controller.row or not fit or min(steps) < granule or max(steps) > 8192 * granule:
        return 0
    return min(limit, controller.total // (run * prod(counts)))


def starts_of_runs(copy: StridedCopy, loops: Sequence[Loop]) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the source and the destination of the run at each turn of some loops."""
    for turn in product(*(range(count) for count, _, _ in loops)):
        steps = list(zip(turn, loops, strict=True))
        source = copy.source + sum(i * step for i, (_, step, _) in steps)
        yield source, copy.destination + sum(i * step for i, (_, _, step) in steps)
