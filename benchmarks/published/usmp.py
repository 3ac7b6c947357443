"""USMP: heights by its hill climb."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.packing.measure import challenging
from benchmarks.published.rows import Row, Source
from spmilp.packing import PackingProblem, pack_by

PUBLISHED = {
    "A": 1_234_944,
    "B": 1_177_600,
    "C": 1_222_656,
    "D": 1_215_488,
    "E": 1_252_352,
    "F": 1_243_136,
    "G": 1_282_048,
    "H": 1_227_776,
    "I": 1_303_552,
    "J": 1_157_120,
    "K": 1_285_120,
}
"""Bytes that it needs by dsa-solver at a8d1257, ``benchmarks/results/standard-v1/summary.csv``."""


def measure(data: Path) -> Iterator[Row]:
    """Measure MiniMalloc's instances, each once."""
    for name, items in challenging(data / "minimalloc").items():
        found = pack_by("usmp:hill_climb", PackingProblem(items=items, capacity=None))
        yield Row(
            quantity=f"height of {name} by hill climb, bytes",
            published=f"{PUBLISHED[name]:,}",
            ours=f"{found.height or 0:,}",
            reason="another sequence of random numbers; 500 orders here, 2,000 from 3 seeds there",
        )


SOURCE = Source(
    title="USMP",
    citation=(
        "TVM's memory planner, RFC 0009, apache/tvm; the heights are dsa-solver's, which has the "
        "algorithm, too."
    ),
    setting="google/minimalloc's `benchmarks/challenging`, seed 0, 500 attempts as in TVM.",
    rows=measure,
)
