"""SET's published example: ResNet-50 on a mesh of 8 x 8 cores, 64 images at a time.

SET counts a byte for each element of every tensor and works with shapes alone, so the network here
has shapes and no values, and its tensors are declared as int8 after it has been read.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from spmilp.bench.peers.resnet50 import write_resnet50
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.pipeline import load
from spmilp.problem.problem import Problem
from spmilp.tile_selection.first_choice import choose_tilings

MACHINE = "set_8x8"
BATCH = 64


def resnet50_on_mesh(data: Path) -> Problem:
    """ResNet-50, batch 64, one byte per element; it needs no data.

    Tile sizes are the first choice: judging others would take minutes each.
    """
    with write_resnet50(BATCH) as folder:
        loaded = load(Path(folder) / "resnet50.onnx", MACHINE)
    network = in_bytes(loaded.network)
    tilings = choose_tilings(network, loaded.target.machine)
    sources = (("model", network.sha256), ("machine", loaded.target.sha256))
    return lower(network, loaded.target.machine, tilings, sources=sources)


def in_bytes(network: Network) -> Network:
    """Return a network of the same shapes whose elements are bytes."""
    byte = np.dtype(np.int8)
    tensors = {name: replace(tensor, dtype=byte) for name, tensor in network.tensors.items()}
    return replace(network, tensors=tensors)
