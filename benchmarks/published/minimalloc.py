"""MiniMalloc's challenging instances: whether they fit in 1 MiB, and their least heights."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.packing.measure import CAPACITY, challenging, measured
from benchmarks.published.rows import Row, Source
from spmilp.packing import PackingOptions, PackingProblem, PackingStatus, minimise, pack, pack_by

SECONDS = 20.0
PUBLISHED = {
    "A": (1_063_936, False),
    "B": (1_081_344, False),
    "C": (1_039_360, True),
    "D": (1_041_408, False),
    "E": (1_471_488, False),
    "F": (1_165_312, False),
    "G": (1_119_232, False),
    "H": (1_152_000, False),
    "I": (1_464_320, False),
    "J": (1_137_664, False),
    "K": (1_256_448, False),
}
"""Bytes that MiniMalloc finds in 5 s when it makes the height small, and whether it proves them
least: dsa-solver at a8d1257, ``benchmarks/results/standard-v1/summary.csv``."""


XLA = {
    "A": 1_374_208,
    "B": 1_412_096,
    "C": 1_417_216,
    "D": 1_304_576,
    "E": 1_469_440,
    "F": 1_433_600,
    "G": 1_428_480,
    "H": 1_405_952,
    "I": 1_478_656,
    "J": 1_333_248,
    "K": 1_397_760,
}
"""Bytes that XLA's heap needs, from the same table."""


def measure(data: Path) -> Iterator[Row]:
    """Measure all eleven in 1 MiB, then for each the least height and that of XLA's heuristic."""
    instances = challenging(data / "minimalloc")
    options = PackingOptions(time_limit=SECONDS, conflict=False)
    problems = {
        name: PackingProblem(items=items, capacity=CAPACITY) for name, items in instances.items()
    }
    fit = sum(measured(pack, one, options).packing.offsets is not None for one in problems.values())
    yield Row(
        quantity=f"instances of {len(instances)} that are packed into 1 MiB",
        published="11",
        ours=f"{fit}",
    )
    for name, items in instances.items():
        found = measured(minimise, PackingProblem(items=items, capacity=None), options).packing
        theirs, is_proven = PUBLISHED[name]
        is_optimal = found.status is PackingStatus.OPTIMAL
        proof = "optimal" if is_optimal else f"at least {found.bound:,}"
        yield Row(
            quantity=f"least height of {name} ({len(items)} buffers), bytes",
            published=f"{theirs:,}, {'optimal' if is_proven else 'not proven'}",
            ours=f"{found.height or 0:,}, {proof}",
            reason="" if theirs == found.height else "another search, and more time",
        )
        heap = pack_by("xla", PackingProblem(items=items, capacity=None)).height
        yield Row(
            quantity=f"height of {name} by XLA's heap, bytes",
            published=f"{XLA[name]:,}",
            ours=f"{heap or 0:,}",
            reason=""
            if heap == XLA[name]
            else "items of equal size and life come in another order",
        )


SOURCE = Source(
    title="MiniMalloc",
    citation=(
        "Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752, whose instances state the capacity; "
        "least heights are those of its program within 5 s on dsa-solver's machine."
    ),
    setting=(
        f"google/minimalloc's `benchmarks/challenging`, {SECONDS:g} s at most for each; its times "
        "beside ours are in [the notes on packing](packing.md#figures)."
    ),
    rows=measure,
)
