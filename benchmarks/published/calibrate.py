"""TVM's learned cost model: errors and orders on tiles that it was not fitted to."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.published.rows import Row, Source
from benchmarks.tiles.calibration import OBJECTIVES, measure

ROWS = 600


def rows(data: Path) -> Iterator[Row]:
    """Measure both objectives on simulated tiles of one workload and of twenty."""
    for workloads in (1, 20):
        for objective in OBJECTIVES:
            found = measure(ROWS, objective, workloads=workloads)
            where = f"objective {objective}, {'20 workloads' if workloads > 1 else '1 workload'}"
            yield Row(
                quantity=f"held-out mean error, {where}",
                published="none",
                ours=f"{found.learned.error:.1%}, analytic {found.by_rule.error:.1%}".replace(
                    "%", " %"
                ),
            )
            yield Row(
                quantity=f"held-out rank correlation, {where}",
                published="none",
                ours=f"{found.learned.rank:.4f}, analytic {found.by_rule.rank:.4f}",
            )


SOURCE = Source(
    title="TVM's cost model",
    citation=(
        "T. Chen et al., OSDI 2018, section 5.2: gradient tree boosting with a rank objective; its "
        "figures are of GPUs, as speed-ups in the course of tuning."
    ),
    setting=(
        f"{ROWS} tiles of convolutions measured on a simulated core that is not linear and has 3 % "
        "of noise ([more](tiles.md#measured-cycles)); five-fold cross-validation. With 20 "
        "workloads each has a speed of its own that no feature tells."
    ),
    rows=rows,
)
