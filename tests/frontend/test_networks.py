"""Whole networks: those of the onnx package, those of this repository, and their numbers."""

from pathlib import Path

import pytest

from spmilp.frontend.find import find_model
from spmilp.frontend.graph import Network, Tensor
from spmilp.frontend.load import load_network
from tests.frontend.running import kinds_of, macs_of

MODELS = Path(__file__).parents[2] / "models"

# MACs of convolutions and Gemm; positions on padding count, BatchNormalization and pooling do not.
LIGHT = {
    "light_bvlc_alexnet": (14, 654_560_384),
    "light_densenet121": (188, 2_834_161_664),
    "light_inception_v1": (75, 1_431_556_352),
    "light_inception_v2": (84, 2_018_851_840),
    "light_resnet50": (57, 4_089_184_256),
    "light_shufflenet": (75, 124_664_528),
    "light_squeezenet": (31, 349_151_936),
    "light_vgg19": (25, 19_632_062_464),
    "light_zfnet512": (14, 1_481_727_008),
}
QUICK = ("light_resnet50", "light_squeezenet", "light_zfnet512")


@pytest.mark.parametrize(
    "name",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.full) for one in LIGHT],
)
def test_a_light_model_has_the_expected_groups_and_macs(name: str) -> None:
    network = load_network(find_model(f"onnx:{name}"))
    groups, macs = LIGHT[name]
    assert (len(network.groups), macs_of(network)) == (groups, macs)
    weights = [tensor for tensor in network.tensors.values() if tensor.shape_only]
    assert weights
    assert all(tensor.data is None for tensor in weights)
    assert len(network.inputs) == 1
    assert_data_is_as_declared(network)


DIMS = {"bert_tiny_f32": {"batch": 1, "sequence": 16}}
MACS = {"resnet8": 12_501_632, "ds_cnn": 2_656_768, "mobilenetv1_025": 7_489_664}
MACS |= {"autoencoder": 264_192}


@pytest.mark.full
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def test_a_model_of_the_repository_loads(path: Path) -> None:
    network = load_network(path, DIMS.get(path.stem, {}))
    name, _, kind = path.stem.rpartition("_")
    assert macs_of(network) == MACS.get(name, macs_of(network)) > 0
    assert not any(tensor.shape_only for tensor in network.tensors.values())
    assert_data_is_as_declared(network)
    if kind == "int8":
        inner = {k for group in kinds_of(network) for k in group}
        integers = [o for group in network.groups for o in group.operators if o.quantisation]
        assert len(integers) > len(inner)
        weights = [t for t in network.tensors.values() if t.data is not None and t.data.size > 99]
        assert {tensor.dtype.name for tensor in weights} <= {"int8", "int32"}


def assert_data_is_as_declared(network: Network) -> None:
    def fits(tensor: Tensor) -> bool:
        data = tensor.data
        return data is None or (data.shape, data.dtype) == (tensor.shape, tensor.dtype)

    assert all(fits(tensor) for tensor in network.tensors.values())
