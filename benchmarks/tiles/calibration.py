"""How well cycles of tiles are learned from a machine that is simulated: non-linear, with noise.

Usage: python -m benchmarks.tiles.calibration [--rows N] [--seed S]

The machine is edge16's core with what the analytic model leaves out: a pipeline that fills anew for
each kernel position and drains, banks that conflict when rows of a tile begin at one, MACs and
vector work that overlap, and a slower clock when the array is full; with noise of 3 %. In the
second table each of 20 workloads runs at a speed of its own that no feature tells, so that only the
order within a workload can be learned. All figures are of held-out rows.
"""

import argparse
from collections.abc import Iterator
from typing import Literal

import numpy as np

from spmilp.calibration.fit import calibrate
from spmilp.calibration.measurements import Measurement
from spmilp.frontend.operators.family import Work
from spmilp.lowering.cost import mac_cycles, task_cycles
from spmilp.lowering.learned import FamilyModel
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine

NOISE = 0.03
OBJECTIVES: tuple[Literal["error", "rank"], ...] = ("error", "rank")
SPREAD = 0.5
"""Standard deviation of the logarithms of the workloads' speeds."""


def simulated(machine: Machine, count: int, seed: int, workloads: int = 1) -> Iterator[Measurement]:
    """Yield measured tiles of convolutions, of workloads in turn."""
    rng = np.random.default_rng(seed)
    speeds = rng.lognormal(0.0, SPREAD, workloads) if workloads > 1 else np.ones(1)
    kind = machine.kinds[0]
    while count > 0:
        k, c = (int(rng.choice((8, 16, 24, 32, 48, 64, 96, 128))) for _ in range(2))
        y, x = (int(rng.choice((1, 2, 4, 7, 8, 14, 16, 28, 32, 56))) for _ in range(2))
        kernel = int(rng.choice((1, 3, 5)))
        vector = int(rng.integers(1, 4)) * k * y * x
        loops = (("K", k), ("C", c), ("Y", y), ("X", x), ("R", kernel), ("S", kernel))
        work = Work(loops=loops, vector=vector, dtype="int8")
        steps, rule = mac_cycles(work, kind), task_cycles(work, kind)
        if steps is None or rule is None:
            continue
        fill = 24 * kernel * kernel * -(-k // 32) * -(-c // 32)
        conflicts = 1.0 + 0.6 * (x % 8 == 0) + 0.25 * (c % 32 != 0)
        throttle = 1.0 + 0.3 * (k * c >= 64 * 64)
        busy = max(steps * conflicts * throttle + fill, vector / 64 * 1.5)
        cycles = (2 * kind.launch + busy) * rng.lognormal(0.0, NOISE)
        yield Measurement(
            kind=kind.name,
            operator="Conv",
            work=work,
            cycles=max(1, round(cycles * speeds[count % workloads])),
            rule=rule,
            workload=str(count % workloads),
        )
        count -= 1


def measure(
    rows: int, objective: Literal["error", "rank"], seed: int = 0, workloads: int = 1
) -> FamilyModel:
    """Return the model of simulated tiles, with its quality on held-out rows."""
    machine = load_machine("edge16").machine
    measured = tuple(simulated(machine, rows, seed, workloads))
    found = calibrate(measured, machine, objective=objective, seed=seed)
    return found.model.families[0]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for workloads in (1, 20):
        print(f"\n{given.rows} tiles, workloads: {workloads}\n")
        print("| objective | mean error | analytic | rank correlation | analytic |")
        print("|---|--:|--:|--:|--:|")
        for objective in OBJECTIVES:
            found = measure(given.rows, objective, given.seed, workloads)
            print(
                f"| {objective} | {found.learned.error:.1%} | {found.by_rule.error:.1%} | "
                f"{found.learned.rank:.4f} | {found.by_rule.rank:.4f} |"
            )


if __name__ == "__main__":
    main()
