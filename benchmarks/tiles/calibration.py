"""How well cycles of tiles are learned from a machine that is simulated: non-linear, with noise.

Usage: python -m benchmarks.tiles.calibration [--rows N] [--seed S]

The machine is edge16's core with what the analytic model leaves out: a pipeline that fills anew for
each kernel position and drains, banks that conflict when rows of a tile begin at one, MACs and
vector work that overlap, and a slower clock when the array is full; with noise of 3 %. The errors
are of held-out rows.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from spmilp.calibration import Measurement, held_out_errors
from spmilp.frontend.operators.geometry import Work
from spmilp.lowering.cost import mac_cycles, task_cycles
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine

NOISE = 0.03


def simulated(machine: Machine, count: int, seed: int) -> Iterator[Measurement]:
    """Yield measured tiles of convolutions."""
    rng = np.random.default_rng(seed)
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
        yield Measurement((kind.name, "Conv", "int8"), work, max(1, round(cycles)), rule)
        count -= 1


def measure(rows: int, seed: int = 0) -> tuple[float, float]:
    """Return the errors of a model of simulated tiles and of the machine's rates."""
    return held_out_errors(tuple(simulated(load_machine("edge16").machine, rows, seed)))


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    error, by_rule = measure(given.rows, given.seed)
    print(f"{given.rows} tiles: error {error:.1%}, analytic {by_rule:.1%}")


if __name__ == "__main__":
    main()
