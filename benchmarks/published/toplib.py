"""TOpLib: partitions of a coloured interference graph beside packed addresses."""

from collections.abc import Iterator, Sequence
from math import exp, log
from pathlib import Path
from statistics import mean

from benchmarks.packing.measure import challenging, measured
from benchmarks.published.rows import Row, Source
from spmilp.packing import Item, PackingOptions, PackingProblem, minimise
from spmilp.policies.toplib import coloured, height
from spmilp.units import Bytes

SECONDS = 5.0


def measure(data: Path) -> Iterator[Row]:
    """Measure MiniMalloc's instances, one by one and all together."""
    ratios = []
    for name, items in challenging(data / "minimalloc").items():
        options = PackingOptions(time_limit=SECONDS, conflict=False)
        packed = measured(minimise, PackingProblem(items=items, capacity=None), options).packing
        if packed.height is None:
            raise SystemExit(f"{name}: not packed within {SECONDS:g} s")
        partitions = height_of_colouring(items)
        ratios.append(packed.height / partitions)
        yield Row(
            quantity=f"bytes for {name} ({len(items)} buffers)",
            published="none",
            ours=f"partitions {partitions:,}, packed {packed.height:,}",
        )
    yield Row(
        quantity="packed ÷ partitions, most and geometric mean of these",
        published="none",
        ours=f"{max(ratios):.3f}, {exp(mean(map(log, ratios))):.3f}",
    )


def height_of_colouring(items: Sequence[Item]) -> Bytes:
    """Return what the partitions of buffers take beside each other."""
    edges = sorted({edge for item in items for life in item.lifetimes for edge in life})
    number = {edge: index for index, edge in enumerate(edges)}
    ranges = [
        {at for start, end in item.lifetimes for at in range(number[start], number[end])}
        for item in items
    ]
    return height(coloured(ranges, [item.size for item in items]))


SOURCE = Source(
    title="TOpLib",
    citation=(
        "Li et al., NPC 2020, doi 10.1007/978-3-030-79478-1_1, and IJPP 2021: run times of 55 "
        "operators on hardware; figures of memory could not be read."
    ),
    setting=(
        "Buffers with lifetimes: google/minimalloc's `benchmarks/challenging`. A colour's "
        "partition is as large as its largest buffer; packed buffers may lie across several. "
        f"Packing had {SECONDS:g} s at most for each."
    ),
    rows=measure,
)
