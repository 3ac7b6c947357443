"""Make two small recurrent networks: ``python make_recurrent.py [FOLDER]``.

Not from the literature; they have the forms in which PyTorch writes its LSTM and GRU: a forward
LSTM, of which the whole sequence and the last state are used, and a GRU in both directions that
applies the reset gate after the recurrent product (``linear_before_reset``).
"""

import sys
from pathlib import Path

import numpy as np
from graph_builder import OPSET, save_model
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from random_numbers import RandomNumbers

STEPS, FEATURES, HIDDEN, CLASSES = 16, 24, 32, 10


def make_lstm(folder: Path) -> None:
    """LSTM over 16 steps; a classifier reads its last state."""
    random = RandomNumbers(16)
    constants = _gates(random, directions=1, gates=4) | {
        "step_axis": np.array([1]),
        "state_shape": np.array([1, HIDDEN]),
        "classifier_weight": random.he((CLASSES, HIDDEN), HIDDEN),
        "classifier_bias": random.uniform((CLASSES,), -0.1, 0.1),
    }
    nodes = [
        helper.make_node(
            "LSTM", ["input", "W", "R", "B"], ["Y", "Y_h"], "lstm", hidden_size=HIDDEN
        ),
        helper.make_node("Squeeze", ["Y", "step_axis"], ["sequence"], "squeeze"),
        helper.make_node("Reshape", ["Y_h", "state_shape"], ["state"], "reshape"),
        helper.make_node(
            "Gemm",
            ["state", "classifier_weight", "classifier_bias"],
            ["logits"],
            "classifier",
            transB=1,
        ),
        helper.make_node("Softmax", ["logits"], ["classes"], "softmax", axis=-1),
    ]
    outputs = {"sequence": (STEPS, 1, HIDDEN), "classes": (1, CLASSES)}
    _save(folder / "tiny_lstm_f32.onnx", nodes, outputs, constants, "Small LSTM", 16)


def make_gru(folder: Path) -> None:
    """GRU in both directions over 16 steps; their states side by side."""
    constants = _gates(RandomNumbers(17), directions=2, gates=3) | {
        "sequence_shape": np.array([STEPS, 1, 2 * HIDDEN])
    }
    nodes = [
        helper.make_node(
            "GRU",
            ["input", "W", "R", "B"],
            ["Y"],
            "gru",
            hidden_size=HIDDEN,
            direction="bidirectional",
            linear_before_reset=1,
        ),
        helper.make_node("Transpose", ["Y"], ["by_step"], "transpose", perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["by_step", "sequence_shape"], ["sequence"], "reshape"),
    ]
    outputs = {"sequence": (STEPS, 1, 2 * HIDDEN)}
    _save(folder / "tiny_gru_f32.onnx", nodes, outputs, constants, "Small GRU", 17)


def _gates(random: RandomNumbers, directions: int, gates: int) -> dict[str, NDArray[np.generic]]:
    """Draw input weights, recurrent weights and biases as ONNX lays them out."""
    rows, limit = gates * HIDDEN, 2 / HIDDEN**0.5
    return {
        "W": random.uniform((directions, rows, FEATURES), -limit, limit),
        "R": random.uniform((directions, rows, HIDDEN), -limit, limit),
        "B": random.uniform((directions, 2 * rows), -limit, limit),
    }


def _save(
    path: Path,
    nodes: list[NodeProto],
    outputs: dict[str, tuple[int, ...]],
    constants: dict[str, NDArray[np.generic]],
    description: str,
    seed: int,
) -> None:
    shapes = {"input": (STEPS, 1, FEATURES)} | outputs
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, path.stem, infos[:1], infos[1:], initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    metadata = {
        "architecture": description,
        "parameters": str(sum(a.size for a in constants.values() if a.dtype == np.float32)),
        "weights": f"random, seed {seed}; not trained",
    }
    save_model(model, path, description, metadata)


def main() -> None:
    """Write both into the folder given, or beside this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    make_lstm(folder)
    make_gru(folder)


if __name__ == "__main__":
    main()
