"""Arenas of networks in ExecuTorch: its greedy, the packer's, and what no plan is below.

Usage: python -m benchmarks.packing.executorch [--alignment BYTES] [NETWORK ...]

The networks have random weights and one input. Operators are those of the edge dialect without a
delegate. CPU seconds are of the planning pass alone.
"""

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
from executorch.exir.passes import MemoryPlanningPass

from spmilp.integrations.executorch import MemoryPlanning
from tests.integrations import networks

NETWORKS: dict[str, Callable[[], Any]] = {
    "mobilenet_v2 224": lambda: networks.mobilenet_v2(224),
    "resnet18 224": lambda: networks.resnet18(224),
    "unet 256": lambda: networks.unet(256, width=32),
    "encoder 12 x 256, 128 tokens": lambda: networks.encoder(128, layers=12, width=256, heads=8),
    "lstm 2 x 128, 64 steps": lambda: networks.lstm(64, layers=2, width=128),
    "inception 3, 96": lambda: networks.inception(96, blocks=3),
}


class Timed:
    """A planning algorithm, and the CPU seconds of its calls."""

    def __init__(self, algorithm: Callable[..., list[int]]) -> None:
        self.algorithm, self.seconds = algorithm, 0.0

    def __call__(self, *given: Any) -> list[int]:
        began = process_time()
        arenas = self.algorithm(*given)
        self.seconds += process_time() - began
        return arenas


def arena(exported: Any, algorithm: Timed, alignment: int) -> int:
    """Return the bytes of all arenas of a program."""
    planning = MemoryPlanningPass(memory_planning_algo=algorithm, alignment=alignment)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    program = to_edge(exported).to_executorch(config).executorch_program
    return sum(program.execution_plan[0].non_const_buffer_sizes)


def main() -> None:
    """Print a row for each network."""
    parser = argparse.ArgumentParser(description="Compare arenas of ExecuTorch.")
    parser.add_argument("--alignment", type=int, default=16)
    parser.add_argument("networks", nargs="*", default=[*NETWORKS])
    given = parser.parse_args()
    print("| network | tensors | greedy B | ours B | bound B | | greedy s | ours s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.networks:
        torch.manual_seed(0)
        network, example = NETWORKS[name]()
        exported = torch.export.export(network.eval(), example)
        planning = MemoryPlanning()
        greedy, ours = Timed(MemoryPlanningAlgorithmSuite()), Timed(planning)
        sizes = [arena(exported, each, given.alignment) for each in (greedy, ours)]
        packing = planning.packings[-1]
        saved = f"{packing.status}, {1 - sizes[1] / sizes[0]:.1%} less"
        figures = (len(packing.problem.buffers), *sizes, packing.heights_bound)
        seconds = f"{greedy.seconds:.2f} | {ours.seconds:.2f}"
        print(f"| {name} | {' | '.join(f'{f:,}' for f in figures)} | {saved} | {seconds} |")


if __name__ == "__main__":
    main()
