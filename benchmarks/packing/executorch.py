"""Plans of ExecuTorch's memory: its own, the packer's, and what no plan is below.

Usage: python -m benchmarks.packing.executorch [NETWORK ...]

First one arena; then a fast bank of half of its bytes, and a slow one. Networks have random weights
and no delegate. CPU seconds are of the planning alone.
"""

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.banked_memory_planning import Bank, BankedGreedy, TargetMemoryMap
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
    """A planning algorithm, the bytes of its arenas and of tensors in arena 2, and CPU seconds."""

    def __init__(self, algorithm: Callable[..., list[int]]) -> None:
        self.algorithm, self.arenas, self.outside, self.seconds = algorithm, 0, 0, 0.0

    def __call__(self, alignment: int, specs: Any, *given: Any) -> list[int]:
        began = process_time()
        arenas = self.algorithm(alignment, specs, *given)
        self.seconds += process_time() - began
        self.arenas = sum(arenas)
        self.outside = sum(spec.allocated_memory for spec in specs if spec.mem_id == 2)
        return arenas


def planned(exported: Any, algorithm: Callable[..., list[int]]) -> Timed:
    """Return what an algorithm made of a program."""
    timed = Timed(algorithm)
    planning = MemoryPlanningPass(memory_planning_algo=timed)
    to_edge(exported).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    return timed


def main() -> None:
    """Print a row for each network."""
    parser = argparse.ArgumentParser(description="Compare plans of ExecuTorch's memory.")
    parser.add_argument("networks", nargs="*", default=[*NETWORKS])
    two = "in slow bank: banked greedy B | ours B | bound B | s | s |"
    print(f"| network | tensors | arena: greedy B | ours B | bound B | s | s | {two}")
    print("|" + "---|" * 12)
    for name in parser.parse_args().networks:
        torch.manual_seed(0)
        network, example = NETWORKS[name]()
        exported = torch.export.export(network.eval(), example)
        planning = MemoryPlanning()
        greedy, ours = (
            planned(exported, one) for one in (MemoryPlanningAlgorithmSuite(), planning)
        )
        half = ours.arenas // 32 * 16
        banks = MemoryPlanning({1: f"fast={half}", 2: f"slow={2 * ours.arenas},cost=1"})
        there = TargetMemoryMap([Bank("fast", half, 1), Bank("slow", 2 * ours.arenas, 2)])
        banked = planned(exported, MemoryPlanningAlgorithmSuite([BankedGreedy(there)]))
        divided = planned(exported, banks)
        arena, both = planning.packings[-1], banks.packings[-1]
        bytes_and_bounds = (
            (len(arena.problem.buffers), greedy.arenas, ours.arenas, arena.heights_bound),
            (banked.outside, divided.outside, both.cost_bound),
        )
        pairs = ((greedy, ours), (banked, divided))
        cells = [
            " | ".join([*(f"{f:,}" for f in figures), *(f"{each.seconds:.2f}" for each in pair)])
            for figures, pair in zip(bytes_and_bounds, pairs, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
