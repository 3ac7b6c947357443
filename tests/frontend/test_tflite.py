"""TensorFlow Lite networks: plans of each operator against LiteRT's reference kernels."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="not installed: ai-edge-litert (spmilp[tflite])")

from frontend.tflite_cases import EXACT, NEAR, Case, block, unary, written
from spmilp.checker.values.compare import Difference, replay_plan
from spmilp.checker.values.kernels import fixed
from spmilp.errors import FileError, SpmilpError, UnsupportedOperatorError
from spmilp.frontend.load import load_network
from spmilp.lowering.lower import lower
from spmilp.pipeline import solve
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

SHARED = Path(__file__).parents[3] / "shared" / "data" / "tflite"


def differences(model: Path, pieces: int = 2) -> tuple[Difference, ...]:
    """Replay a plan of a model that is cut into pieces."""
    network = load_network(model)
    problem = lower(network, MACHINE, cut(network, pieces, 1))
    return replay_plan(problem, sequential_plan(problem), model)


@pytest.mark.parametrize("name", EXACT)
def test_integers_are_those_of_the_reference_kernels(name: str, tmp_path: Path) -> None:
    for found in differences(written(EXACT[name], tmp_path)):
        assert found.within, found
        assert found.absolute == 0, found


@pytest.mark.full
@pytest.mark.parametrize("name", EXACT)
def test_integers_are_the_same_with_other_scales(name: str, tmp_path: Path) -> None:
    for seed in range(1, 4):
        assert all(one.absolute == 0 for one in differences(written(EXACT[name], tmp_path, seed)))


@pytest.mark.parametrize("name", NEAR)
def test_reals_and_other_integers_are_within_their_tolerance(name: str, tmp_path: Path) -> None:
    for found in differences(written(NEAR[name], tmp_path)):
        assert found.within, found


@pytest.mark.parametrize("name", ["resnet8_int8", "autoenc_int8"])
def test_networks_of_the_converter_replay_bit_for_bit(name: str) -> None:
    model = SHARED / f"{name}.tflite"
    if not model.exists():
        pytest.skip(f"not there: {model.name} of the shared data")
    for found in differences(model, 3):
        assert found.absolute == 0, found
        assert found.allowed == 0


def test_a_network_is_solved_and_replayed(tmp_path: Path) -> None:
    model = written(block, tmp_path)
    result = solve(model, "gap9", solver="list")
    assert (result.replay(model)["absolute"] == 0).all()


def test_a_step_beside_the_reference_is_found_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*given: object) -> np.ndarray:
        return np.asarray(scaled(*given) + 1)

    scaled = fixed.scaled
    monkeypatch.setattr(fixed, "scaled", wrong)
    found = differences(written(EXACT["CONV_2D 0"], tmp_path))
    assert "is the first that differs" in found[0].why
    assert "but LiteRT computes" in found[0].why


def test_operators_that_cannot_be_lowered_are_listed_together(tmp_path: Path) -> None:
    case = Case(0)
    data, weight = case.byte([2, 8]), case.tensor([3, 8], "int8", 0.1, 0, np.ones((3, 8)))
    reals, product = case.tensor([2, 8], "float32"), case.tensor([2, 3], "float32")
    found = case.byte([2, 8])
    case.operator("DEQUANTIZE", [data], [reals])
    case.operator("FULLY_CONNECTED", [reals, weight, -1], [product], table="FullyConnectedOptions")
    case.operator("SVDF", [data], [found])
    state = case.byte([2, 8])
    case.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [data], [state])
    wide, wider = (case.tensor([2, 8], "int16", 0.1) for _ in range(2))
    case.operator("RELU", [wide], [wider])
    model = case.write(tmp_path / "some.tflite", [data, wide], [product, found, state, wider])
    with pytest.raises(UnsupportedOperatorError) as caught:
        load_network(model)
    assert "FULLY_CONNECTED): weights are integers and data are reals" in str(caught.value)
    assert "SVDF): the operator is not supported" in str(caught.value)
    assert "_LSTM): the operator is not supported; convert" in str(caught.value)
    assert "unroll=True" in str(caught.value)
    assert f"RELU): t{wide} has integers of 16 bits that stand for reals" in str(caught.value)


def test_files_of_another_form_are_named(tmp_path: Path) -> None:
    model = tmp_path / "empty.tflite"
    model.write_bytes(b"")
    with pytest.raises(FileError, match=r"empty\.tflite is not a TensorFlow Lite model"):
        load_network(model)


def test_broken_bytes_give_a_message_or_a_network(tmp_path: Path) -> None:
    content = written(unary("RELU"), tmp_path).read_bytes()
    model, random = tmp_path / "broken.tflite", np.random.default_rng(0)
    for number in range(200):
        changed = bytearray(content)
        if number % 2:
            changed = changed[: random.integers(8, len(content))]
        else:
            for place in random.integers(8, len(content), 4):
                changed[place] = random.integers(256)
        model.write_bytes(changed)
        with suppress(SpmilpError):
            load_network(model)
