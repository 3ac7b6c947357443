"""TensorFlow Lite networks against LiteRT's reference kernels, operator by operator."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from onnx import helper

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.registry import compute
from spmilp.checker.values.nodes import Mismatch, worst
from spmilp.errors import FileError
from spmilp.frontend.fixed_point import is_exact
from spmilp.frontend.graph import Network, Operator
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.tflite.file import read_tflite
from spmilp.frontend.tflite.read import CHANNELS_FIRST, TO_FIRST, names_of

OF_FLOATS = 1e-4
"""By how much floats may differ, relative to the largest magnitude of a result."""


def litert_tensors(model: Path, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], bool]:
    """Return what LiteRT computes of each tensor, by its name here; by reference kernels or not.

    Others take their place where there is none of an operator's version.

    Raises a ``FileError`` if LiteRT cannot run the model, and a ``MissingExtraError`` if it is not
    installed.
    """
    names = names_of(read_tflite(model)[0])
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kinds = OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    for kind in kinds:
        try:
            interpreter = Interpreter(
                model_path=str(model),
                experimental_op_resolver_type=kind,
                experimental_preserve_all_tensors=True,
                num_threads=1,
            )
            interpreter.allocate_tensors()
            for each in interpreter.get_input_details():
                values = inputs[names[each["index"]]]
                interpreter.set_tensor(each["index"], values.reshape(each["shape"]))
            interpreter.invoke()
            break
        except (RuntimeError, ValueError) as error:
            failure = error
    else:
        raise FileError(
            f"{model}: LiteRT cannot run it ({failure}); give the outputs with the inputs, "
            "--input FILE.npz"
        ) from failure
    found = {}
    for number, name in enumerate(names):
        try:
            found[name] = np.asarray(interpreter.get_tensor(number))
        except ValueError:  # of a tensor that is nowhere: a constant folded, an optional one
            continue
    return found, kind is OpResolverType.BUILTIN_REF


def compare_with_litert(
    network: Network, known: Mapping[str, Array], *, by_reference: bool
) -> Iterator[Mismatch]:
    """Compute each operator on LiteRT's operands, and compare its result with LiteRT's.

    Integers must be the same where the operator is computed in fixed point, and LiteRT computes
    ``by_reference``; they may be a step apart elsewhere.
    """
    values = {one.name: one.values for one in network.tensors.values() if one.values is not None}
    values |= {name: known[name] for name in network.inputs}
    # Reals that are computed here alone: rounding may differ.
    own = set[str]()
    for operator in (each for group in network.groups for each in group.operators):
        if not all(name in values for name in operator.inputs if name):
            continue
        result = _computed(network, operator, values)
        is_real, follows = result.dtype.kind == "f", not own.isdisjoint(operator.inputs)
        expected = _of_litert(known, network.renamed.get(operator.output, operator.output))
        if expected is None or expected.size != result.size:
            values[operator.output] = result
            own |= {operator.output} if is_real or follows else set()
            continue
        expected = values[operator.output] = expected.reshape(result.shape)
        allowed = 0.0 if by_reference and not follows and is_exact(operator) else 1.0
        if is_real:
            allowed = OF_FLOATS * float(np.abs(expected).max(initial=0))
        node = helper.make_node(operator.kind, [], [operator.output], name=operator.name)
        limits = np.full(result.shape, allowed)
        yield worst(node, operator.output, result, expected, limits)


def _computed(network: Network, operator: Operator, values: Mapping[str, Array]) -> Array:
    box = whole(network.tensors[operator.output].shape)
    boxes = geometries(network)[operator].reads(box, None)
    inputs = [
        None if read is None else values[name][tuple(slice(*each) for each in read)]
        for name, read in zip(operator.inputs, boxes, strict=True)
    ]
    result = compute(Call(operator, network.tensors, inputs, boxes, box))
    return result.reshape(network.tensors[operator.output].shape)


def _of_litert(known: Mapping[str, Array], name: str) -> Array | None:
    """Return LiteRT's values of a tensor in the layout that it has here."""
    values = known.get(name.removesuffix(CHANNELS_FIRST))
    if values is None or not name.endswith(CHANNELS_FIRST):
        return values
    return values.transpose(TO_FIRST)
