"""OnSRAM: the ceiling of a scratchpad without limit, and pinning by its figure of merit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import ModelProto

from benchmarks.published.chains import mobilenet_v1, vgg16
from benchmarks.published.rows import Row, Source
from benchmarks.published.whole_nodes import SPM_BYTES, node_time, structures_of, whole_nodes
from spmilp.frontend.find import LIGHT_PREFIX, find_model, light_models
from spmilp.policies.onsram import by_merit, pinned_in_turn

PUBLISHED = {
    "AlexNet": ("1.04", "1.02"),
    "VGG16": ("1.19", "1.02"),
    "GoogLeNet": ("1.94", "1.83"),
    "ResNet-50": ("1.75", "1.49"),
    "MobileNetV1": ("5.17", "4.76"),
    "SqueezeNet": ("2.84", "2.20"),
}
"""Speed-ups over no management: without limit (Table 1) and static (Fig. 7, read off within 0.02
except that of MobileNetV1)."""
LIGHT_NAMES = {
    "bvlc_alexnet": "AlexNet",
    "inception_v1": "GoogLeNet",
    "resnet50": "ResNet-50",
    "squeezenet": "SqueezeNet",
}


class Speedups(NamedTuple):
    """Node time with nothing pinned over that with everything, and by merit."""

    ceiling: float
    static: float


def measure(data: Path) -> Iterator[Row]:
    """Measure the networks with published figures, then what holds on all."""
    found = {name: speedups(made()) for name, made in _models().items()}
    for name, published in PUBLISHED.items():
        yield from _rows_of(name, *published, found[name])
    shares = [one.static / one.ceiling for one in found.values()]
    yield Row(
        quantity="static ÷ ceiling, least of these networks",
        published="none",
        ours=f"{100 * min(shares):.0f} %",
    )


def _models() -> dict[str, Callable[[], ModelProto]]:
    found: dict[str, Callable[[], ModelProto]] = {"VGG16": vgg16, "MobileNetV1": mobilenet_v1}
    for name in light_models():
        own = name.removeprefix("light_")
        found[LIGHT_NAMES.get(own, own)] = lambda name=name: onnx.load(
            find_model(LIGHT_PREFIX + name)
        )
    return found


def speedups(model: ModelProto) -> Speedups:
    """Return the speed-ups of a network over no management."""
    network = whole_nodes(model)
    structures, ideal = structures_of(network, SPM_BYTES), structures_of(network, None)
    everything = frozenset(range(len(ideal.all)))
    chosen = (everything, pinned_in_turn(structures, by_merit(structures)))
    nothing = node_time(network, structures, frozenset())
    return Speedups(*(nothing / node_time(network, structures, pins) for pins in chosen))


def _rows_of(name: str, ceiling: str, static: str, found: Speedups) -> Iterator[Row]:
    yield Row(
        quantity=f"speed-up without limit, {name}",
        published=ceiling,
        ours=f"{found.ceiling:.2f}",
        reason=REASONS.get(name, ALWAYS),
    )
    share = float(static) / float(ceiling)
    yield Row(
        quantity=f"speed-up of the static policy, {name}",
        published=f"{static} ({100 * share:.0f} % of the ceiling)",
        ours=f"{found.static:.2f} ({100 * found.static / found.ceiling:.0f} %)",
        reason="streams take no room here",
    )


ALWAYS = "operations of pooling, normalisation and Softmax are not stated there"
REASONS = {
    "ResNet-50": "neither the variant nor how normalisation is split into nodes is stated there",
    "MobileNetV1": "depthwise convolutions have the full rate of the array here",
    "SqueezeNet": "version 1.1 here, with less arithmetic than 1.0; which one is not stated there",
}
SOURCE = Source(
    title="OnSRAM",
    citation=(
        "Pal et al., ACM TECS 2022, doi 10.1145/3530909, Table 1 and Fig. 7 (read off within 0.02 "
        "but for MobileNetV1), as a re-implementation, gkeramidasCSD-Group/Scale-Sim-SPM, quotes "
        "them."
    ),
    setting=(
        "3 TFLOP/s for convolutions and matrix products, 375 GFLOP/s for all else, 2 B for each "
        "element, 2 MiB of scratchpad with 384 GB/s, DRAM with 32 GB/s; unfused nodes, biases too, "
        "each as long as its arithmetic or its bytes take; batch 1; 224 × 224 pictures. Speed-ups "
        "are those over everything through DRAM. These are node times, not plans: the solver "
        "`onsram` chooses in the same way, and adds addresses and transfers."
    ),
    rows=measure,
)
