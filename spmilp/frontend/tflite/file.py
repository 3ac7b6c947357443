"""Files of TensorFlow Lite (LiteRT) and TensorFlow Lite for Microcontrollers, read and written.

The schema is that of LiteRT's package, whose classes end in ``T`` where they can be changed.
"""

import struct
from pathlib import Path
from typing import Any

from spmilp.errors import FileError, MissingExtraError
from spmilp.files import read_bytes

IDENTIFIER = b"TFL3"
"""Bytes 4 to 7 of a file with such a schema."""


def is_tflite(path: Path) -> bool:
    """Say whether a file's name is that of a TensorFlow Lite model."""
    return path.suffix.lower() in (".tflite", ".lite")


def schema() -> Any:
    """Return the classes of the schema.

    Raises a ``MissingExtraError`` if LiteRT's package is not installed.
    """
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError as error:
        raise MissingExtraError(
            "ai-edge-litert is not installed; pip install 'spmilp[tflite]'"
        ) from error
    return schema_py_generated


def read_tflite(path: Path) -> tuple[Any, bytes]:
    """Return the model (``ModelT``) of a file, and the file's bytes.

    Raises a ``FileError`` if it cannot be read or is no TensorFlow Lite model, and a
    ``MissingExtraError`` if LiteRT's package is not installed.
    """
    classes, content = schema(), read_bytes(path)
    if content[4:8] != IDENTIFIER:
        raise FileError(
            f"{path} is not a TensorFlow Lite model: bytes 4 to 7 are {content[4:8]!r}, expected "
            f"{IDENTIFIER!r}"
        )
    try:
        model = classes.ModelT.InitFromPackedBuf(content, 0)
    # The reader checks nothing: what it raises depends on which bytes are broken.
    except (struct.error, IndexError, KeyError, MemoryError, OverflowError, TypeError, ValueError):
        model = None
    if model is None or not model.subgraphs or not model.buffers:
        raise FileError(
            f"{path} is not a sound TensorFlow Lite model: its {len(content)} bytes are truncated "
            "or damaged"
        )
    return model, content


def write_tflite(model: Any) -> bytes:
    """Return the bytes of a model."""
    from flatbuffers import Builder

    class AlignedBuilder(Builder):  # type: ignore[misc]
        """Bytes of tensors begin at multiples of 16, as the schema says and kernels rely on."""

        def CreateNumpyVector(self, x: Any) -> Any:  # noqa: N802
            self.Prep(16 if x.itemsize == 1 else x.itemsize, x.nbytes)
            return super().CreateNumpyVector(x)

    builder = AlignedBuilder(1 << 20)
    builder.Finish(model.Pack(builder), IDENTIFIER)
    return bytes(builder.Output())


def builtin_name(model: Any, operator: Any) -> str:
    """Return an operator's name in the schema, such as ``CONV_2D``; its own if it is custom."""
    code = model.operatorCodes[operator.opcodeIndex]
    # Files of older versions have the code in one byte.
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    if code.customCode:
        return str(code.customCode.decode(errors="replace"))
    names = {value: name for name, value in vars(schema().BuiltinOperator).items()}
    return str(names.get(number, f"operator {number}"))
