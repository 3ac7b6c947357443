"""SMAUG: the tiles of its unit tests, and what its tiles make of DRAM traffic."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.tile_selection.settings import Tiles
from spmilp.tile_selection.smaug import Convolution, Shape, TileShapes, tile_shapes
from spmilp.units import Bytes

MOST = 32 * 1024 // 2
"""Elements of two bytes in each of its three scratchpads."""

UNIT_TESTS = (
    (
        Convolution(inputs=(1, 32, 64, 16), weights=(8, 3, 3, 16), results=(1, 32, 64, 8)),
        TileShapes(inputs=(1, 16, 64, 16), weights=(8, 3, 3, 16), results=(1, 15, 64, 8)),
    ),
    (
        Convolution(inputs=(1, 16, 16, 128), weights=(16, 3, 3, 128), results=(1, 16, 16, 16)),
        TileShapes(inputs=(1, 16, 16, 64), weights=(16, 3, 3, 64), results=(1, 16, 16, 16)),
    ),
    (
        Convolution(inputs=(1, 32, 32, 192), weights=(32, 4, 4, 192), results=(1, 32, 32, 32)),
        TileShapes(inputs=(1, 16, 32, 32), weights=(32, 4, 4, 32), results=(1, 15, 32, 32)),
    ),
)
"""Convolutions, and the tiles that its test expects."""

NETWORKS = (
    ("models/resnet8_int8.onnx", "gap9"),
    ("models/ds_cnn_f32.onnx", "epiphany3"),
    ("onnx:light_squeezenet", "edge16"),
    ("models/mobilenetv2_f32.onnx", "mesh4x4"),
)
GREEDY = "greedy:earliest_finish/critical_path"


def measure(data: Path) -> Iterator[Row]:
    """Measure the unit tests, then networks in both kinds of tiles under one rule."""
    for convolution, expected in UNIT_TESTS:
        found = tile_shapes(convolution, MOST)
        yield Row(
            quantity=f"tiles of {_described(convolution.inputs, convolution.weights)}",
            published=_described(expected.inputs, expected.weights, expected.results),
            ours="none"
            if found is None
            else _described(found.inputs, found.weights, found.results),
        )
    for model, machine in NETWORKS:
        first, filled = (_traffic(model, machine, how) for how in (Tiles.FIRST, Tiles.SMAUG))
        where = f"{Path(model).stem.removeprefix('onnx:light_')} on `{machine}`"
        yield Row(
            quantity=f"DRAM traffic, first choice ÷ SMAUG's tiles, {where}",
            published="none",
            ours=f"{first / filled:.3f}",
        )


def _described(*shapes: Shape) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes)


def _traffic(model: str, machine: str, tiles: Tiles) -> Bytes:
    problem = problem_of(model, machine, tiles=tiles)
    result = find_solver(GREEDY).solve(problem, SolveOptions())
    if result.plan is None or check(problem, result.plan):
        raise SystemExit(f"{GREEDY} on {problem.name}: no plan that passes the checker")
    return result.plan.claim.dram_traffic


SOURCE = Source(
    title="SMAUG",
    citation=(
        "Xi et al., ACM TACO 17(4) 2020, doi 10.1145/3424669; tiles are those of the test of its "
        "convolutions, harvard-acc/smaug at 8fd68e6."
    ),
    setting=(
        "Three scratchpads of 32 KiB, elements of 2 B, units of 8 × 32 multipliers. Shapes have "
        "channels last, those of weights output channels first; inputs, weights, results. Traffic "
        f"is that of `{GREEDY}` with `--tiles first` and `smaug`."
    ),
    rows=measure,
)
