"""A plan replayed against its problem's model: each operator against its node, and the outputs."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from spmilp.checker.values.inputs import random_inputs, read_values
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.litert import compare_with_litert, litert_tensors
from spmilp.checker.values.nodes import Mismatch, compare_nodes, distance, session_options
from spmilp.checker.values.replay import Traced, replay, replay_stream
from spmilp.checker.values.state import ValuesError
from spmilp.errors import FileError, MissingExtraError
from spmilp.files import write_together
from spmilp.frontend.fixed_point import is_exact, is_fixed
from spmilp.frontend.graph import Joined, Network, Tensor
from spmilp.frontend.load import load_network_of
from spmilp.frontend.operators.boxes import slices
from spmilp.frontend.tflite.file import is_tflite
from spmilp.plan.plan import Plan
from spmilp.plan.running import enough_to_replay, running
from spmilp.problem.problem import Problem
from spmilp.problem.several import Member
from spmilp.units import Extents

T = TypeVar("T")

RELATIVE: Mapping[str, float] = {"float16": 2e-2, "bfloat16": 1e-1}
"""Largest allowed difference, relative to the output's largest magnitude."""

RELATIVE_OF_OTHER_FLOATS = 1e-4
"""The same for all other types of floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of one output from its reference, and ``why`` it is wrong; empty if it is not.

    ``absolute`` is the largest difference of an element, infinite where only one of the two is
    finite; ``relative`` the same, relative to the largest finite magnitude of the reference;
    ``allowed`` the largest ``absolute`` that is within the tolerance, ``None`` where each operator
    was judged instead, so that it does not matter how far errors add up. Of a stream ``inference``
    is its number.
    """

    name: str
    shape: Extents
    dtype: str
    absolute: float
    relative: float
    allowed: float | None
    why: str = ""
    inference: int = 0

    @property
    def within(self) -> bool:
        """Say whether nothing is wrong with the output."""
        return not self.why


def compare(
    outputs: Mapping[str, Array], reference: Mapping[str, Array], network: Network
) -> tuple[Difference, ...]:
    """Compare every output with its reference, which may have another shape of the same elements.

    Floats may differ by 1e-4 of the output's largest magnitude (float16 by 2e-2, bfloat16 by 1e-1).
    Integers may differ by one quantisation step: onnxruntime multiplies a quantised operator's
    reals in float32, where this project adds products of integers exactly and rounds once. For the
    same reason floats of a network with quantised operators may differ by one more step of these.

    Raises a ``ValuesError`` if an output is missing, or has another number of elements.
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


def reference_outputs(
    model: Path, inputs: Mapping[str, Array], warn: Callable[[str], None] = warnings.warn
) -> dict[str, Array]:
    """Return what onnxruntime computes, its graph optimisations off and its products exact.

    Of a model that it refuses ONNX's reference computes the outputs, and ``warn`` is told.

    Those of a TensorFlow Lite model are LiteRT's.

    Raises a ``MissingExtraError`` if onnxruntime is not installed, and a ``FileError`` if neither
    can run the model.
    """
    if is_tflite(model):
        return litert_tensors(model, inputs)[0]
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
        warn(f"{model}: compared with ONNX's reference instead of onnxruntime ({error})")
        try:
            evaluator = ReferenceEvaluator(str(model))
            given = {name: inputs[name] for name in evaluator.input_names if name in inputs}
            results = evaluator.run(None, given)
            return dict(zip(evaluator.output_names, map(np.asarray, results), strict=True))
        except Exception:  # of any kind
            raise FileError(
                f"{model}: onnxruntime cannot run it ({error}); give the outputs with the "
                f"inputs, --input FILE.npz"
            ) from error
    names = (one.name for one in session.get_outputs())
    return {name: np.asarray(array) for name, array in zip(names, results, strict=True)}


def _feed(wanted: Any, inputs: Mapping[str, Array]) -> Array:
    """Return an input's values; zeros for one that the network does not depend on."""
    shape = [length if isinstance(length, int) else 1 for length in wanted.shape]
    if wanted.name in inputs:
        given = inputs[wanted.name]
        # A state is known here in the shape in which it is left.
        return given if given.size != prod(shape) else given.reshape(shape)
    names = {"tensor(float)": "float32", "tensor(double)": "float64"}
    kind = names.get(wanted.type, wanted.type.removeprefix("tensor(").removesuffix(")"))
    return np.zeros(shape, dtype=kind)


def _difference(name: str, values: Array, expected: Array, network: Network) -> Difference:
    steps = _steps(network)
    if np.issubdtype(expected.dtype, np.integer) or expected.dtype == np.bool_:
        wide_values, wide_expected = values.astype(np.int64), expected.astype(np.int64)
        apart = np.abs(wide_values - wide_expected).astype(np.float64)
        magnitude = float(np.abs(wide_expected).max(initial=0))
        # Integers that stand for reals may be a step apart.
        is_step_apart = steps and expected.dtype != np.bool_ and not _is_exact(network)
        allowed = 1.0 if is_step_apart else 0.0
    else:
        apart, wanted = distance(values, expected), expected.astype(np.float64)
        magnitude = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
        share = RELATIVE.get(expected.dtype.name, RELATIVE_OF_OTHER_FLOATS)
        allowed = share * magnitude + max(steps, default=0.0)
    absolute = float(apart.max(initial=0))
    why = f"differs by {absolute:.3g}, allowed {allowed:.3g}" if absolute > allowed else ""
    return Difference(
        name=name,
        shape=values.shape,
        dtype=expected.dtype.name,
        absolute=absolute,
        relative=absolute / magnitude if magnitude > 0 else absolute,
        allowed=allowed,
        why=why,
    )


def _is_exact(network: Network) -> bool:
    """Say whether all integers are TensorFlow Lite's, bit for bit."""
    operators = [operator for group in network.groups for operator in group.operators]
    return any(map(is_fixed, operators)) and all(map(is_exact, operators))


def _steps(network: Network) -> list[float]:
    """Return the steps of the integers that quantised operators write, or read, at the most."""
    operators = (operator for group in network.groups for operator in group.operators)
    given = [one.quantisation for one in operators if one.quantisation is not None]
    scales = (one.output or next(filter(None, one.inputs), None) for one in given)
    return [float(scale.scale.max()) for scale in scales if scale is not None]


def replay_plan(
    problem: Problem,
    plan: Plan,
    model: str | Path | Sequence[str | Path],
    *,
    dims: Mapping[str, int] | None = None,
    values: Path | None = None,
    seed: int = 0,
    folder: Path | None = None,
    warn: Callable[[str], None] = warnings.warn,
) -> tuple[Difference, ...]:
    """Run a plan on real numbers, and compare each output with onnxruntime's or a file's.

    Of a stream so many inferences run, each on other inputs, that all have met that ever do, at all
    addresses; the first one's inputs are those of the file. Several networks are compared one by
    one, each with its own model.

    Parameters
    ----------
    model
        The one that the problem was made from, or those, with the same ``dims``.
    values
        An ``.npz`` file with the network's inputs, and perhaps the outputs, which then take the
        place of onnxruntime's; without it inputs are random.
    folder
        Where to write the inputs and what the plan makes of them, as the C programs read and write
        them: ``input0.bin``, ``expected0.bin`` and so on, in the network's order; those of all
        inferences of a stream one behind the other.
    warn
        Is told where onnxruntime has no kernel, so that ONNX's reference takes its place.

    Raises a ``ReplayError`` if the plan reads bytes that are not there, or changes bytes while they
    are read, and another ``SpmilpError`` if a file cannot be used, the model is another one, or
    onnxruntime is missing.
    """
    file, network = load_network_of(problem, model, dims or {})
    empty = [one.name for one in network.tensors.values() if one.shape_only and one.values is None]
    if empty:
        raise FileError(
            f"{file}: no values for {', '.join(empty[:3])}, which a replay computes with"
        )
    many = 1 if plan.stream is None else enough_to_replay(plan, plan.stream)
    inputs = [random_inputs(network, seed + inference) for inference in range(many)]
    given: list[dict[str, Array] | None] = [None] * many
    if values is not None:
        inputs[0], given[0] = read_values(values, network)
    inputs = [{**each, **network.given} for each in inputs]
    traces = [dict[str, list[Traced]]() for _ in inputs]
    if plan.stream is None:
        outputs = [replay(problem, plan, network, inputs[0], traces[0])]
    else:
        runs = running(problem, plan, many)
        problem, plan = runs.problem, runs.plan
        outputs = replay_stream(runs, network, inputs, traces)
        for mine, trace in zip(outputs, traces, strict=True):
            mine |= {
                name: _joined(network.tensors[name], trace[name])[0]
                for name in network.states.values()
            }
    if folder is not None:
        said = [("input", network.inputs, inputs), ("expected", network.outputs, outputs)]
        files = {
            f"{what}{number}.bin": b"".join(each[name].tobytes() for each in found)
            for what, names, found in said
            for number, name in enumerate(names)
        }
        write_together(folder, files)
    found = list[Difference]()
    for begin, each in _members(network, file):
        judge, states = _Judge(problem, plan, each.network, each.file), dict[str, Array]()
        for inference, own in enumerate(outputs):
            fed = {**_of(inputs[inference], begin), **each.network.given, **states}
            known = given[inference]
            wanted = judge.reference(fed, warn) if known is None else _of(known, begin)
            renamed, mine = each.network.renamed, _of(own, begin)
            # The next one is judged by what it begins with, so that rounding does not add up.
            states = {
                name: mine[left].reshape(wanted[renamed.get(left, left)].shape)
                for name, left in each.network.states.items()
            }
            fed |= {name: fed[name].reshape(state.shape) for name, state in states.items()}
            judged = judge.judged(
                compare(mine, wanted, each.network),
                fed,
                _of(traces[inference], begin),
                by_operators=known is None,
            )
            found += [replace(one, name=begin + one.name, inference=inference) for one in judged]
    return tuple(sorted(found, key=lambda one: one.inference))


def _members(network: Network, file: Path) -> Iterator[tuple[str, Joined]]:
    """Yield what names begin with, of each inference in a period, and its own network."""
    if not network.parts:
        yield "", Joined(member=Member(name=network.name), network=network, file=file)
    for part in network.parts:
        for begin in part.member.inferences:
            yield begin, part


def _of(named: Mapping[str, T], begin: str) -> dict[str, T]:
    """Return what is of an inference, by the names in its own network."""
    some = (name for name in named if name.startswith(begin))
    return {name.removeprefix(begin): named[name] for name in some}


class _Judge:
    """Looks for the operator that is to blame for a difference, and forgives those of rounding."""

    def __init__(self, problem: Problem, plan: Plan, network: Network, file: Path) -> None:
        self._problem, self._plan, self._network = problem, plan, network
        self._file, self._model = file, onnx.ModelProto()
        self._known: tuple[dict[str, Array], bool] | None = None
        if not is_tflite(file):
            sorted_model = ir.from_proto(onnx.load(file))
            sorted_model.graph.sort()
            self._model = ir.to_proto(sorted_model)

    def reference(
        self, inputs: Mapping[str, Array], warn: Callable[[str], None]
    ) -> dict[str, Array]:
        """Return the outputs of the model, as :func:`reference_outputs`; LiteRT runs once."""
        if not is_tflite(self._file):
            return reference_outputs(self._file, inputs, warn)
        self._known = litert_tensors(self._file, inputs)
        return self._known[0]

    def judged(
        self,
        found: tuple[Difference, ...],
        inputs: Mapping[str, Array],
        trace: Mapping[str, Sequence[Traced]],
        *,
        by_operators: bool,
    ) -> tuple[Difference, ...]:
        """Return the differences of an inference, with what is said of its operators.

        Where outputs are judged ``by_operators``, it does not matter how far errors add up.
        """
        if not by_operators and not is_tflite(self._file) and find_spec("onnxruntime") is None:
            return found
        network = self._network
        computed = {
            network.renamed.get(name, name): _joined(network.tensors[name], pieces)
            for name, pieces in trace.items()
        }
        by_reference = False
        if is_tflite(self._file):
            computed_there = self._known if by_operators else None
            known, by_reference = computed_there or litert_tensors(self._file, inputs)
            compared = compare_with_litert(network, known, by_reference=by_reference)
        else:
            compared = compare_nodes(self._model, inputs, computed)
        nodes = {one.tensor: one for one in compared}
        wrong = next((one for one in nodes.values() if one.share > 1), None)
        passed_over = {
            name for node in self._model.graph.node for name in node.output if name in computed
        }
        is_exact = by_reference and _is_exact(network)
        if by_operators and not is_exact and passed_over <= set(nodes):
            found = tuple(
                replace(one, allowed=None, why="") if one.name in nodes else one for one in found
            )
        if wrong is None:
            return found
        library = "LiteRT" if is_tflite(self._file) else "onnxruntime"
        why = _said(self._problem, self._plan, network, trace, wrong, library)
        after = {wrong.tensor}
        for operator in (one for group in network.groups for one in group.operators):
            if not after.isdisjoint(operator.inputs):
                after |= {operator.output, network.renamed.get(operator.output, "")}
        reached = {one.name for one in found} & after
        return tuple(
            replace(one, why=why) if one.name in reached or not reached else one for one in found
        )


def _joined(tensor: Tensor, pieces: Sequence[Traced]) -> tuple[Array, NDArray[np.bool_]]:
    """Return what was computed of a tensor, and of which elements."""
    values = np.zeros(tensor.shape, dtype=tensor.dtype)
    there = np.zeros(tensor.shape, dtype=np.bool_)
    for box, piece, _ in pieces:
        inside = slices(box, (0,) * len(box))
        values[inside], there[inside] = piece, True
    return values, there


def _said(
    problem: Problem,
    plan: Plan,
    network: Network,
    trace: Mapping[str, Sequence[Traced]],
    wrong: Mismatch,
    library: str,
) -> str:
    """Name an operator, the task that computed the element, its tile, and where that lies."""
    own = {name: own for own, name in network.renamed.items()}.get(wrong.tensor, wrong.tensor)
    element = tuple(map(int, np.unravel_index(wrong.position, network.tensors[own].shape)))
    box, _, number = next(
        piece
        for piece in reversed(trace[own])
        if all(first <= at < stop for at, (first, stop) in zip(element, piece[0], strict=True))
    )
    task, residency = problem.tasks[number], plan.residencies[plan.placements[number].writes[0]]
    return (
        f"{wrong.node.op_type} {wrong.node.name or wrong.tensor} is the first that differs: "
        f"element {element} of {wrong.tensor} is {wrong.found:.9g}, but {library} computes "
        f"{wrong.expected:.9g} of the same operands, and rounding explains {wrong.allowed:.2g}; "
        f"task {task.name}, tile {box}, result in "
        f"{problem.machine.memories[residency.memory].name} at {residency.offset}"
    )
