"""SMAUG: what its tiles make of DRAM traffic."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.tile_selection.settings import Tiles
from spmilp.units import Bytes

NETWORKS = (
    ("models/resnet8_int8.onnx", "gap9"),
    ("models/ds_cnn_f32.onnx", "epiphany3"),
    ("onnx:light_squeezenet", "edge16"),
    ("models/mobilenetv2_f32.onnx", "mesh4x4"),
)
GREEDY = "greedy:earliest_finish/critical_path"


def measure(data: Path) -> Iterator[Row]:
    """Measure networks in both kinds of tiles under one rule."""
    for model, machine in NETWORKS:
        first, filled = (_traffic(model, machine, how) for how in (Tiles.FIRST, Tiles.SMAUG))
        where = f"{Path(model).stem.removeprefix('onnx:light_')} on `{machine}`"
        yield Row(
            quantity=f"DRAM traffic, first choice ÷ SMAUG's tiles, {where}",
            published="none",
            ours=f"{first / filled:.3f}",
        )


def _traffic(model: str, machine: str, tiles: Tiles) -> Bytes:
    problem = problem_of(model, machine, tiles=tiles)
    result = find_solver(GREEDY).solve(problem, SolveOptions())
    if result.plan is None or check(problem, result.plan):
        raise SystemExit(f"{GREEDY} on {problem.name}: no plan that passes the checker")
    return result.plan.claim.dram_traffic


SOURCE = Source(
    title="SMAUG",
    citation="Xi et al., ACM TACO 17(4) 2020, doi 10.1145/3424669.",
    setting=f"Traffic is that of `{GREEDY}` with `--tiles first` and `smaug`.",
    rows=measure,
)
