"""ONNX's own cases in every operator set from 7 on, and what they give."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.frontend.running import Array, onnxruntime_outputs

NOT_COMPARED = (
    # onnxruntime begins at 0 along an axis that becomes one element long, as we do.
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
    # Not defined: the mask before set 12, and a mask of Attention shorter than its cache before 25.
    "test_dropout_default_mask",
    "test_attention_local_window_ext_cache",
)
"""Beginnings of names of cases that are not taken to older operator sets."""


@dataclass(frozen=True)
class Case:
    """A model of one operator, its inputs, and what it gives by one source or several."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    expected: tuple[Mapping[str, Array], ...]
    rtol: float = 1e-5


@cache
def versions(kind: str) -> tuple[int, ...]:
    """Return the operator sets from 7 on in which an operator is defined anew."""
    every = {
        one.since_version
        for one in onnx.defs.get_all_schemas_with_history()
        if one.name == kind and one.domain == ""
    }
    before = max((since for since in every if since <= 7), default=None)
    later = {since for since in every if since > 7}
    return tuple(sorted(later | ({7} if before is not None else set())))


def onnx_s_own(
    part: int = 0, of: int = 1
) -> Iterator[tuple[Any, dict[str, Array], dict[str, Array]]]:
    """Yield a part of ONNX's own cases of tensors, by name, with inputs and outputs."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sorted(load_model_tests(kind="node"), key=lambda case: case.name)
    for case in found[part * len(found) // of : (part + 1) * len(found) // of]:
        inputs, outputs = case.data_sets[0]
        if all(isinstance(value, np.ndarray | np.generic) for value in (*inputs, *outputs)):
            graph = case.model.graph
            ends = ((graph.input, inputs), (graph.output, outputs))
            yield (
                case,
                *(
                    {
                        one.name: np.asarray(value)
                        for one, value in zip(declared, values, strict=True)
                    }
                    for declared, values in ends
                ),
            )


def cases(part: int = 0, of: int = 1, *, older_sets: bool = True) -> Iterator[Case]:
    """Yield every part of so many of the cases: as they are, and in older operator sets.

    All inputs are given at run time; where there are several, all but the first are constants in
    another model.
    """
    for case, given, said in onnx_s_own(part, of):
        names = list(given)
        own = case.model.opset_import[0].version
        (node, *more) = case.model.graph.node
        is_plain = (
            older_sets
            and not case.name.startswith(NOT_COMPARED)
            and not more
            and node.domain == ""
            and case.model.opset_import[0].domain == ""
        )
        older = [v for v in versions(node.op_type) if v < own] if is_plain else []
        for at_run_time in (names, names[:1])[: len(names)]:
            model = with_constants(case.model, {n: given[n] for n in names if n not in at_run_time})
            feeds = {name: given[name] for name in at_run_time}
            how = "" if at_run_time == names else ", constants"
            truths = (said, *computed(model, feeds, reference=False))
            yield Case(f"{case.name}{how}", model, feeds, truths, case.rtol)
            for version in older:
                old = in_operator_set(model, version)
                truths = () if old is None else computed(old, feeds)
                if old is not None and truths:
                    yield Case(f"{case.name}{how}, {version}", old, feeds, truths, case.rtol)


def with_constants(model: onnx.ModelProto, constants: Mapping[str, Array]) -> onnx.ModelProto:
    """Return a model some of whose inputs are constants."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    kept = [value for value in new.graph.input if value.name not in constants]
    del new.graph.input[:]
    new.graph.input.extend(kept)
    for name, array in constants.items():
        new.graph.initializer.append(numpy_helper.from_array(array, name))
    return new


def computed(
    model: onnx.ModelProto, feeds: Mapping[str, Array], *, reference: bool = True
) -> tuple[Mapping[str, Array], ...]:
    """Return what onnxruntime gives; else, if asked for, ONNX's reference; nothing if neither."""
    try:
        return (onnxruntime_outputs(model, feeds),)
    except Exception:  # It refuses in many ways.
        names = [value.name for value in model.graph.output]
    if not reference:
        return ()
    try:
        with np.errstate(all="ignore"):
            return (
                dict(zip(names, ReferenceEvaluator(model).run(names, dict(feeds)), strict=True)),
            )
    except Exception:
        return ()


def in_operator_set(model: onnx.ModelProto, version: int) -> onnx.ModelProto | None:
    """Return a model of one node as an older operator set says it; ``None`` if it cannot be.

    Inputs that were attributes become attributes again; attributes that were not there are left
    out, so that the node may mean something else.
    """
    new = onnx.ModelProto()
    new.CopyFrom(model)
    (node,), constants = new.graph.node, {one.name: one for one in new.graph.initializer}
    schema = onnx.defs.get_schema(node.op_type, version)
    present = onnx.defs.get_schema(node.op_type, model.opset_import[0].version)
    if schema.deprecated or len(node.output) > schema.max_output:
        return None
    formals, known = [one.name.lower() for one in schema.inputs], list(node.input)
    names = [one.name.lower() for one in present.inputs]
    given = dict(zip(names, known, strict=False))
    gone = {
        name: {"constant_value": "value"}.get(name, name) for name in given if name not in formals
    }
    is_fewer = len(known) > schema.max_input
    if is_fewer or any(attribute in schema.attributes for attribute in gone.values()):
        known = [given.get(name, "") for name in formals]
        for name, attribute in gone.items():
            tensor = constants.get(given[name])
            if not given[name] or (tensor is not None and 0 in tensor.dims):
                continue
            if attribute not in schema.attributes or tensor is None:
                return None
            kind = str(schema.attributes[attribute].type).rpartition(".")[2]
            value: Any = numpy_helper.to_array(tensor).reshape(-1).tolist()
            value = value if kind.endswith("S") else value[0]
            node.attribute.append(helper.make_attribute(attribute, value))
    while known and not known[-1]:
        known.pop()
    node.input[:] = known
    for attribute in list(node.attribute):
        if attribute.name not in schema.attributes:
            node.attribute.remove(attribute)
    for name, tensor in constants.items():
        if name not in known:
            new.graph.initializer.remove(tensor)
    for value in new.graph.output:
        value.type.tensor_type.ClearField("shape")
    new.opset_import[0].version = version
    return new
