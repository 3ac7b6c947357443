"""Model files: finding them by name, reading them, and saying clearly what is wrong with them."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import networkx as nx
import onnx
import onnx_ir as ir
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from spmilp.errors import FileError
from spmilp.files import is_device
from spmilp.frontend.cleanup.nodes import name_of, quiet_libraries
from spmilp.frontend.find import near_files


def read_model(path: Path) -> tuple[ir.Model, str]:
    """Return the model of a file, its nodes in topological order, and the file's SHA-256.

    Tensors in files of their own stay there until they are used; they need not exist.

    Raises
    ------
    FileError
        If the file cannot be read, is no ONNX model, or its graph is broken or cyclic.
    """
    content = _bytes_of(path)
    proto = _decode(path, content)
    with quiet_libraries(), _as_file_error(path, "is not a sound ONNX model"):
        _names_are_text(path, proto)
        _places_in_files_are_numbers(path, proto)
        for node in proto.graph.node:
            node.name = node.name or next(iter(node.output), node.op_type)
        model = ir.from_proto(proto)
        ir.external_data.set_base_dir(model.graph, path.parent)
    _external_data_lies_beside_it(path, model.graph)
    _is_connected(path, model.graph)
    _is_acyclic(path, model.graph)
    _constants_have_their_bytes(path, model.graph)
    model.graph.sort()
    return model, hashlib.sha256(content).hexdigest()


def _bytes_of(path: Path) -> bytes:
    if path.is_dir():
        raise FileError(f"{path} is a directory; name a model file in it")
    if is_device(path):
        raise FileError(f"{path} is a device; expected an ONNX model")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise FileError(f"there is no model file {path}{near_files(path)}") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    if not content:
        raise FileError(f"{path} is empty; expected an ONNX model")
    return content


def _decode(path: Path, content: bytes) -> onnx.ModelProto:
    kind = "text" if _is_text(content[:4096]) else "truncated or of another format"
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError as error:
        raise FileError(
            f"{path} is not an ONNX model: its {len(content)} bytes are {kind}"
        ) from error
    # A file cut off between two fields can be decoded; what comes last is then missing.
    for what, there in (("graph with outputs", model.graph.output), ("opset", model.opset_import)):
        if not there:
            raise FileError(
                f"{path} is not an ONNX model: its {len(content)} bytes name no {what}, so they "
                f"are {kind}"
            )
    return model


def _is_text(start: bytes) -> bool:
    try:
        text = start.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)


@contextmanager
def _as_file_error(path: Path, verdict: str) -> Iterator[None]:
    """Say of which file a library complains."""
    try:
        yield
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise FileError(f"{path} {verdict}: {error}") from error


def _names_are_text(path: Path, message: Message) -> None:
    """Raise if a name is not in UTF-8; the library gives it as bytes."""
    for field, value in message.ListFields():
        single = isinstance(value, str | bytes | Message)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in [value] if single else value:
                _names_are_text(path, inner)
        elif field.type == FieldDescriptor.TYPE_STRING:
            for text in [value] if single else value:
                if isinstance(text, bytes):
                    raise FileError(
                        f"{path} is not a sound ONNX model: {field.full_name} is no text: "
                        f"{text[:60]!r}"
                    )


def _places_in_files_are_numbers(path: Path, proto: onnx.ModelProto) -> None:
    """Raise if values in a file of their own begin or end nowhere."""
    for tensor in proto.graph.initializer:
        for entry in tensor.external_data:
            number = entry.value.isascii() and entry.value.isdecimal()
            if entry.key in ("offset", "length") and not number:
                raise FileError(
                    f"{path}: tensor {tensor.name!r}: {entry.key} of its external data is "
                    f"{entry.value!r}, expected a number of bytes"
                )


def _external_data_lies_beside_it(path: Path, graph: ir.Graph) -> None:
    """Raise if a tensor's values lie in no ordinary file of the model's folder or one below."""
    folder = path.parent.resolve()
    for name, tensor in _all_tensors(graph):
        if not isinstance(tensor, ir.ExternalTensor):
            continue
        file = (path.parent / tensor.location).resolve()
        if not file.is_relative_to(folder):
            why = f"lies in {str(tensor.location)!r}, outside the model's folder"
        elif file.exists() and not file.is_file():
            why = f"lies in {str(tensor.location)!r}, which is no ordinary file"
        else:
            continue
        raise FileError(f"{path}: tensor {name!r} {why}")


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
    given = {*graph.inputs, *graph.initializers.values()}
    for node in graph:
        for value in node.inputs:
            if value is not None and value.producer() is None and value not in given:
                raise FileError(
                    f"{path}: node {name_of(node)} reads {value.name!r}, which nothing gives"
                )
    for value in graph.outputs:
        if value.producer() is None and value not in given:
            raise FileError(f"{path}: nothing gives the output {value.name!r}")


def _is_acyclic(path: Path, graph: ir.Graph) -> None:
    """Raise unless the nodes can be put in order; name some nodes of a cycle."""
    order = nx.DiGraph()
    for node in graph:
        order.add_edges_from((before, node) for before in node.predecessors())
    if nx.is_directed_acyclic_graph(order):
        return
    cycle = [name_of(node) for node, _ in islice(nx.find_cycle(order), 5)]
    raise FileError(f"{path}: the graph is cyclic: {' -> '.join([*cycle, '...'])}")


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
