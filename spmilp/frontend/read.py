"""Reading model files, and saying clearly what is wrong with them."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.frontend.cleanup.nodes import first_line, name_of, quiet_libraries
from spmilp.frontend.find import find_model
from spmilp.frontend.tflite.file import is_tflite
from spmilp.frontend.tflite.read import onnx_of_tflite


def read_model(path: Path) -> tuple[ir.Model, str]:
    """Return the model of a file, its nodes in topological order, and the file's SHA-256.

    Tensors in files of their own stay there until they are used; they need not exist. Raises a
    ``FileError`` if the file cannot be read, is no ONNX or TensorFlow Lite model, or its graph is
    broken or cyclic.
    """
    found = find_model(str(path))
    if is_tflite(found):
        proto, content = onnx_of_tflite(found)
    else:
        content = read_bytes(found)
        proto = _decode(path, content)
    _holds_tensors(path, proto.graph)
    with quiet_libraries(), _as_file_error(path, "is not a sound ONNX model"):
        for node in proto.graph.node:
            node.name = node.name or next(iter(node.output), node.op_type)
        model = ir.from_proto(proto)
        ir.external_data.set_base_dir(model.graph, path.parent)
    _external_data_lies_beside_it(path, model.graph)
    _is_connected(path, model.graph)
    _constants_have_their_bytes(path, model.graph)
    with _as_file_error(path, "is not a sound ONNX model"):
        model.graph.sort()
    return model, hashlib.sha256(content).hexdigest()


def _decode(path: Path, content: bytes) -> onnx.ModelProto:
    if not content:
        raise FileError(f"{path} is empty; expected an ONNX model")
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError as error:
        raise FileError(
            f"{path} is not an ONNX model: its {len(content)} bytes are truncated or of another "
            "format"
        ) from error
    # A file cut off between two fields can be decoded; what comes last is then missing.
    for what, there in (("graph with outputs", model.graph.output), ("opset", model.opset_import)):
        if not there:
            raise FileError(
                f"{path} is not an ONNX model: its {len(content)} bytes name no {what}, so they "
                "are truncated or of another format"
            )
    return model


@contextmanager
def _as_file_error(path: Path, verdict: str) -> Iterator[None]:
    """Say of which file a library complains."""
    try:
        yield
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise FileError(f"{path} {verdict}: {first_line(error)}") from error


def _holds_tensors(path: Path, graph: onnx.GraphProto) -> None:
    """Raise if a constant is sparse, or a value a map: what reads the file takes neither."""
    attributes = [one for node in graph.node for one in node.attribute]
    sparse = [one.values.name for one in graph.sparse_initializer]
    sparse += [one.name for one in attributes if one.HasField("sparse_tensor")]
    for name in sparse:
        raise FileError(f"{path}: constant {name!r} is sparse; store it with all its elements")
    for one in attributes:
        _holds_tensors(path, one.g)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if "map_type" in str(value.type):
            raise FileError(
                f"{path}: {value.name!r} is a map, not a tensor; cut off the node that gives it"
            )


def _external_data_lies_beside_it(path: Path, graph: ir.Graph) -> None:
    """Raise if a tensor's values lie in no ordinary file of the model's folder or one below."""
    folder = path.parent.resolve()
    for name, tensor in _all_tensors(graph):
        if not isinstance(tensor, ir.ExternalTensor):
            continue
        file = (path.parent / tensor.location).resolve()
        is_inside = file.is_relative_to(folder)
        if not is_inside or (file.exists() and not file.is_file()):
            why = "which is no ordinary file" if is_inside else "outside the model's folder"
            raise FileError(f"{path}: tensor {name!r} lies in {str(tensor.location)!r}, {why}")


def _all_tensors(graph: ir.Graph) -> Iterator[tuple[str | None, ir.TensorProtocol | None]]:
    """Yield the constants of a graph and of those inside it, and the tensors in attributes."""
    for one in (graph, *graph.subgraphs()):
        for value in one.initializers.values():
            yield value.name, value.const_value
    for node in graph.all_nodes():
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.TENSOR:
                yield node.name, attribute.as_tensor()
            elif attribute.type is ir.AttributeType.TENSORS:
                yield from ((node.name, tensor) for tensor in attribute.as_tensors())


def _is_connected(path: Path, graph: ir.Graph) -> None:
    """Raise unless every node and output reads something that exists."""
    graphs = (graph, *graph.subgraphs())
    given = {value for one in graphs for value in (*one.inputs, *one.initializers.values())}
    read = [(f"node {name_of(n)}", value) for n in graph.all_nodes() for value in n.inputs]
    for who, value in (*read, *(("an output", v) for one in graphs for v in one.outputs)):
        if value is not None and value.producer() is None and value not in given:
            raise FileError(f"{path}: {who} reads {value.name!r}, which nothing gives")


def _constants_have_their_bytes(path: Path, graph: ir.Graph) -> None:
    """Raise unless every constant in the file is empty or as long as its shape says."""
    for value in graph.initializers.values():
        tensor = value.const_value
        if not isinstance(tensor, ir.TensorProtoTensor) or tensor.dtype is ir.DataType.STRING:
            continue
        with _as_file_error(path, f"has a broken constant {value.name!r}"):
            length = len(tensor.tobytes())
        # A constant without any values stands for its shape alone.
        if length not in (0, tensor.nbytes):
            raise FileError(
                f"{path}: constant {value.name!r} of shape {list(tensor.shape)} has {length} B, "
                f"expected {tensor.nbytes} B"
            )
