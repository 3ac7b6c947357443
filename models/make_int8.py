"""Quantise the MLPerf Tiny networks to int8: ``python make_int8.py [FOLDER]``.

Reads ``NAME_f32.onnx`` of the folder (or of this one) and writes ``NAME_int8.onnx``, in QDQ form:
``QuantizeLinear`` and ``DequantizeLinear`` around float operators. As in the reference's TFLite
files, weights are int8, symmetric, one scale for each output channel; activations int8, asymmetric,
one scale for each tensor; biases int32. The ranges are those seen on random, normal inputs, for the
networks are not trained. A Relu whose effect the quantised range already has is gone, as in
TFLite.

The quantiser is onnxruntime's (``quantize_static``); another version of it may write other bytes.
"""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from graph_builder import save_model
from numpy.typing import NDArray
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from random_numbers import RandomNumbers

NETWORKS = ("resnet8", "ds_cnn", "mobilenetv1_025", "autoencoder")
CALIBRATION_INPUTS = 32


class RandomInputs(CalibrationDataReader):
    """Seeded inputs for calibration."""

    def __init__(self, model: onnx.ModelProto, seed: int) -> None:
        self._feeds = self._generate(model.graph.input[0], RandomNumbers(seed))

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        """Return the next input by name, or ``None`` after the last."""
        return next(self._feeds, None)

    @staticmethod
    def _generate(
        info: onnx.ValueInfoProto, random: RandomNumbers
    ) -> Iterator[dict[str, NDArray[np.float32]]]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        for _ in range(CALIBRATION_INPUTS):
            yield {info.name: random.normal(shape)}


def fold_batch_normalization(model: onnx.ModelProto) -> None:
    """Fold each BatchNormalization into the Conv or Gemm before it, in place."""
    graph = model.graph
    tensors = {t.name: t for t in graph.initializer}
    layers = {node.output[0]: node for node in graph.node}
    for norm in [node for node in graph.node if node.op_type == "BatchNormalization"]:
        layer = layers[norm.input[0]]
        names = [*layer.input[1:], *norm.input[1:]]
        w, b, gamma, beta, mean, variance = (
            numpy_helper.to_array(tensors[name]).astype(np.float64) for name in names
        )
        epsilon = next(a.f for a in norm.attribute if a.name == "epsilon")
        factor = gamma / np.sqrt(variance + epsilon)
        folded = (w * factor.reshape(-1, *[1] * (w.ndim - 1)), (b - mean) * factor + beta)
        for name, array in zip(layer.input[1:], folded, strict=True):
            tensors[name].CopyFrom(numpy_helper.from_array(array.astype(np.float32), name))
        for name in norm.input[1:]:
            graph.initializer.remove(tensors[name])
        layer.output[0] = norm.output[0]
        graph.node.remove(norm)


def make_int8(name: str, folder: Path) -> None:
    """Quantise ``NAME_f32.onnx`` of the folder into ``NAME_int8.onnx``."""
    model = onnx.load(folder / f"{name}_f32.onnx")
    description, metadata = model.doc_string, {p.key: p.value for p in model.metadata_props}
    fold_batch_normalization(model)
    path = folder / f"{name}_int8.onnx"
    quantize_static(
        model,
        path,
        RandomInputs(model, seed=32),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    quantised = onnx.load(path)
    del quantised.graph.value_info[:]
    used = {node.domain for node in quantised.graph.node}
    kept = [o for o in quantised.opset_import if o.domain in used]
    del quantised.opset_import[:]
    quantised.opset_import.extend(kept)
    metadata["quantisation"] = f"ranges of {CALIBRATION_INPUTS} random inputs, seed 32"
    save_model(quantised, path, description.partition(";")[0] + ", int8", metadata)


def main() -> None:
    """Quantise all four in the folder given, or beside this script."""
    # It warns that BatchNormalization should be folded first; here it has been.
    logging.getLogger().setLevel(logging.ERROR)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name in NETWORKS:
        make_int8(name, folder)


if __name__ == "__main__":
    main()
