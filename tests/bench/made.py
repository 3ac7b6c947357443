"""Records by hand."""

from typing import Any

from spmilp.bench.make import ProblemStatistics
from spmilp.bench.records import Record, Setting
from spmilp.comparison.run import Moment

STATISTICS = ProblemStatistics(
    problem_sha256="aa",
    quantity="makespan",
    tasks=10,
    cores=4,
    kind="balanced",
    tight=False,
    work=80,
    traffic=60,
    pressure=0.25,
    roofline=50,
)
SETTING = Setting(row_sha256="aa", version="1", time_limit=10.0, workers=1, gap=0.0)
DESCRIBED: dict[str, object] = {
    "model": "net.onnx",
    "machine": "mesh4x4",
    "dram": "0.5",
    "spm": "1",
    "tiles": "first",
}


def record(
    instance: str = "net-mesh4x4",
    solver: str = "list",
    objective: int | None = 120,
    first: float = 1.0,
    **changes: Any,
) -> Record:
    """Return a run whose only plan came after ``first`` seconds."""
    plain: dict[str, Any] = {
        "seed": 0,
        "setting": SETTING,
        "described": DESCRIBED,
        "statistics": STATISTICS,
        "status": "feasible" if objective is not None else "unknown",
        "bound": 100,
        "bound_source": "work",
        "transfers": None if objective is None else 7,
        "seconds": 4.0,
        "cpu_seconds": 3.5,
        "peak_bytes": 300 * 2**20,
        "history": (Moment(seconds=first, objective=objective, bound=100),),
        "reason": "" if objective is not None else "no time",
    }
    return Record(instance=instance, solver=solver, objective=objective, **(plain | changes))
