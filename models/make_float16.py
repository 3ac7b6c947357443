"""Make the keyword spotting network in float16: ``python make_float16.py [FOLDER]``.

Reads ``ds_cnn_f32.onnx`` of the folder (or of this one) and writes ``ds_cnn_f16.onnx``: every
weight rounded, inputs and outputs float16 too.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from graph_builder import save_model
from onnx import TensorProto, numpy_helper


def make_float16(name: str, folder: Path) -> None:
    """Round ``NAME_f32.onnx`` of the folder to ``NAME_f16.onnx``."""
    model = onnx.load(folder / f"{name}_f32.onnx")
    for tensor in model.graph.initializer:
        rounded = numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.elem_type = TensorProto.FLOAT16
    metadata = {p.key: p.value for p in model.metadata_props}
    description = model.doc_string.partition(";")[0] + ", float16"
    save_model(model, folder / f"{name}_f16.onnx", description, metadata)


def main() -> None:
    """Write it into the folder given, or beside this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    make_float16("ds_cnn", folder)


if __name__ == "__main__":
    main()
