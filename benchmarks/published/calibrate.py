"""TVM's learned cost model: errors on tiles that it was not fitted to."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.published.rows import Row, Source
from benchmarks.tiles.calibration import measure

ROWS = 600


def rows(data: Path) -> Iterator[Row]:
    """Measure the error on simulated tiles."""
    error, by_rule = measure(ROWS)
    ours = f"{error:.1%}, analytic {by_rule:.1%}".replace("%", " %")
    yield Row(quantity="held-out mean error", published="none", ours=ours)


SOURCE = Source(
    title="TVM's cost model",
    citation=(
        "T. Chen et al., OSDI 2018, section 5.2: gradient tree boosting with a rank objective; its "
        "figures are of GPUs, as speed-ups in the course of tuning."
    ),
    setting=(
        f"{ROWS} tiles of convolutions measured on a simulated core that is not linear and has 3 % "
        "of noise ([more](tiles.md#measured-cycles)); five-fold cross-validation."
    ),
    rows=rows,
)
