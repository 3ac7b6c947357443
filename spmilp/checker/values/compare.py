"""A plan replayed against its problem's model: how far its outputs are from onnxruntime's."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import onnx

from spmilp.checker.values.inputs import random_inputs, read_values
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.replay import replay
from spmilp.checker.values.state import ValuesError
from spmilp.errors import FileError, MissingExtraError
from spmilp.frontend.graph import Network, Quantisation
from spmilp.frontend.load import load_network_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.units import Extents

PRODUCTS_OF_BYTES = frozenset({"MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul"})
"""Operators of which onnxruntime may cut off sums of two products at 16 bits, on x86 processors
without an instruction for them (VNNI)."""

RELATIVE: Mapping[str, float] = {"float16": 2e-2, "bfloat16": 1e-1}
"""Largest allowed difference, relative to the output's largest magnitude."""

RELATIVE_OF_OTHER_FLOATS = 1e-4
"""The same for all other types of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of one output from its reference.

    Parameters
    ----------
    absolute
        The largest difference of an element; infinite where only one of the two is finite.
    relative
        The same, relative to the largest finite magnitude of the reference.
    allowed
        The largest ``absolute`` that is within the tolerance.
    """

    name: str
    shape: Extents
    dtype: str
    absolute: float
    relative: float
    allowed: float

    @property
    def within(self) -> bool:
        """Say whether the output is within the tolerance."""
        return self.absolute <= self.allowed


def compare(
    outputs: Mapping[str, Array], reference: Mapping[str, Array], network: Network
) -> tuple[Difference, ...]:
    """Compare every output with its reference, which may have another shape of the same elements.

    Floats may differ by 1e-4 of the output's largest magnitude (float16 by 2e-2, bfloat16 by 1e-1).
    Integers may differ by one quantisation step: onnxruntime multiplies a quantised operator's
    reals in float32, where this project adds products of integers exactly and rounds once. For the
    same reason a float that is computed from integers may differ by one more step of these.

    Raises
    ------
    ValuesError
        If an output is missing, or has another number of elements.
    """
    found = []
    for own, values in outputs.items():
        name = network.renamed.get(own, own)
        if name not in reference:
            known = ", ".join(reference)
            raise ValuesError(f"output {name} has no reference; the model's outputs are {known}")
        expected = reference[name]
        if expected.size != values.size:
            raise ValuesError(f"output {name}: shape {values.shape}, expected {expected.shape}")
        difference = _difference(own, values, expected.reshape(values.shape), network)
        found.append(replace(difference, name=name))
    return tuple(found)


def reference_outputs(model: Path, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return what onnxruntime computes, its graph optimisations off and its products exact.

    Raises
    ------
    MissingExtraError
        If onnxruntime is not installed.
    FileError
        If it cannot run the model.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            "onnxruntime is not installed; pip install 'spmilp[replay]'"
        ) from error
    try:
        options = session_options(onnx.load(model, load_external_data=False).graph)
        session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
        feeds = {one.name: _feed(one, inputs) for one in session.get_inputs()}
        results = session.run(None, feeds)
    # Every exception of onnxruntime's is a class of its own below Exception.
    except Exception as error:
        raise FileError(
            f"{model}: onnxruntime cannot run it ({error}); give the outputs with the "
            f"inputs, --input FILE.npz"
        ) from error
    names = (one.name for one in session.get_outputs())
    return {name: np.asarray(array) for name, array in zip(names, results, strict=True)}


def session_options(graph: onnx.GraphProto) -> Any:
    """Return options for onnxruntime's sessions: no optimisations, exact products of bytes.

    For these onnxruntime makes signed weights unsigned, by an optimisation of the second level. It
    cannot do so where the values are signed, as their zero points (the third inputs) tell.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    signed = {one.name for one in graph.initializer if one.data_type == onnx.TensorProto.INT8}
    products = [node for node in graph.node if node.op_type in PRODUCTS_OF_BYTES]
    if products and signed.isdisjoint(name for node in products for name in node.input[2:3]):
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    return options


def _feed(wanted: Any, inputs: Mapping[str, Array]) -> Array:
    """Return an input's values; zeros for one that the network does not depend on."""
    if wanted.name in inputs:
        return inputs[wanted.name]
    shape = [length if isinstance(length, int) else 1 for length in wanted.shape]
    names = {"tensor(float)": "float32", "tensor(double)": "float64"}
    kind = names.get(wanted.type, wanted.type.removeprefix("tensor(").removesuffix(")"))
    return np.zeros(shape, dtype=kind)


def _difference(name: str, values: Array, expected: Array, network: Network) -> Difference:
    before = _quantised_before(name, network)
    if np.issubdtype(expected.dtype, np.integer) or expected.dtype == np.bool_:
        wide_values, wide_expected = values.astype(np.int64), expected.astype(np.int64)
        apart = np.abs(wide_values - wide_expected).astype(np.float64)
        magnitude = float(np.abs(wide_expected).max(initial=0))
        # Integers that stand for reals may be a step apart.
        allowed = 1.0 if before and expected.dtype != np.bool_ else 0.0
    else:
        real, wanted = values.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.abs(real - wanted)
        same = (real == wanted) | (np.isnan(real) & np.isnan(wanted))
        apart = np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))
        magnitude = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        share = RELATIVE.get(expected.dtype.name, RELATIVE_OF_OTHER_FLOATS)
        allowed = share * magnitude + max(map(_step, before), default=0.0)
    absolute = float(apart.max(initial=0))
    return Difference(
        name=name,
        shape=values.shape,
        dtype=expected.dtype.name,
        absolute=absolute,
        relative=absolute / magnitude if magnitude > 0 else absolute,
        allowed=allowed,
    )


def _step(quantisation: Quantisation) -> float:
    """Return the greatest step of the integers from which a float is computed."""
    scale = quantisation.output or next(filter(None, quantisation.inputs), None)
    return 0.0 if scale is None else float(scale.scale.max())


def _quantised_before(name: str, network: Network) -> list[Quantisation]:
    """Return those of the quantised operators that are met first on every way back."""
    operators = [operator for group in network.groups for operator in group.operators]
    backwards = nx.DiGraph()
    backwards.add_node(name)
    for operator in operators:
        if operator.quantisation is None:
            backwards.add_edges_from((operator.output, read) for read in operator.inputs)
    met = {name, *nx.descendants(backwards, name)}
    found = (operator.quantisation for operator in operators if operator.output in met)
    return [quantisation for quantisation in found if quantisation is not None]


def replay_plan(
    problem: Problem,
    plan: Plan,
    model: str | Path,
    *,
    dims: Mapping[str, int] | None = None,
    values: Path | None = None,
    seed: int = 0,
) -> tuple[Difference, ...]:
    """Run a plan on real numbers, and compare each output with onnxruntime's or a file's.

    Parameters
    ----------
    model
        The one that the problem was made from, with the same ``dims``.
    values
        An ``.npz`` file with the network's inputs, and perhaps the outputs, which then take the
        place of onnxruntime's; without it inputs are random.

    Raises
    ------
    ReplayError
        If the plan reads bytes that are not there, or changes bytes while they are read.
    SpmilpError
        If a file cannot be used, the model is another one, or onnxruntime is missing.
    """
    file, network = load_network_of(problem, model, dims or {})
    inputs, reference = (
        read_values(values, network) if values else (random_inputs(network, seed), None)
    )
    if reference is None:
        reference = reference_outputs(file, inputs)
    outputs = replay(problem, plan, network, inputs)
    return compare(outputs, reference, network)
