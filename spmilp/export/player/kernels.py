"""What the kernels in C cannot compute: there is one for every operator, within limits."""

from collections.abc import Iterator

from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.export.tables.codes import Elements
from spmilp.frontend.graph import Network, Operator, Scale

TYPES = frozenset(
    type_.name.lower()
    for type_ in Elements
    if type_ not in (Elements.FLOAT64, Elements.UINT64, Elements.BFLOAT16)
)
"""Types of elements, by NumPy's names."""

RANK, INPUTS, WINDOW_AXES = 8, 32, 3
"""``SPMILP_MAX_RANK``, ``SPMILP_MAX_INPUTS`` and ``SPMILP_WINDOW_AXES`` of the sources; a plan that
needs more inputs says so in its makefile."""

LEAST_INPUTS = 5
"""What some kernel looks at without counting."""

_WINDOWED = frozenset({"AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool"})
_PER_CHANNEL = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_ROWS = frozenset({"LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax"})
_ON_FLOATS = (
    (_WINDOWED - {"ConvInteger"}) | _ROWS | {"Gemm", "GlobalAveragePool", "GlobalMaxPool", "MatMul"}
)


def require_kernels(subject: Subject, format_: str = "player") -> None:
    """Make sure that there are kernels in C for all of the network.

    Raises
    ------
    ExportError
        If it cannot; the message names the operator and what is missing.
    """
    network = subject.network
    if network is None:
        raise ExportError(
            f"{format_}: the tables do not say what tasks compute; export with --model MODEL.onnx"
        )
    for group in network.groups:
        for operator in group.operators:
            for missing in (*_missing(network, operator), *_missing_for_numbers(network, operator)):
                raise ExportError(
                    f"{format_}: operator {comment(operator.name)} ({comment(operator.kind)}): "
                    f"{missing}"
                )


def _missing(network: Network, operator: Operator) -> Iterator[str]:
    """Yield the reasons why its kernel cannot compute an operator, element types' kinds aside."""
    for name in (*filter(None, operator.inputs), operator.output):
        tensor = network.tensors[name]
        if tensor.dtype.name not in TYPES:
            yield f"kernels do not compute with elements of type {tensor.dtype}"
        if len(tensor.shape) > RANK:
            yield f"a tensor of {len(tensor.shape)} axes > {RANK}, the most that kernels take"
    axes = len(network.tensors[operator.output].shape) - 2
    if operator.kind in _WINDOWED and axes > WINDOW_AXES:
        yield f"windows along {axes} axes > {WINDOW_AXES}, the most that kernels take"


def _missing_for_numbers(network: Network, operator: Operator) -> Iterator[str]:
    """Yield the kinds of integers and scales that a kernel cannot compute with."""
    if not operator.inputs or not operator.inputs[0]:
        return
    dtype = network.tensors[operator.inputs[0]].dtype
    is_integer = dtype.kind in "iub"
    reals_only = operator.kind in _ON_FLOATS or operator.kind.startswith("Reduce")
    # A float holds every integer of two bytes.
    is_exact = operator.kind in ("MaxPool", "GlobalMaxPool", "Resize") and dtype.itemsize <= 2
    reals_only |= operator.kind == "Resize" and operator.attributes["mode"] != "nearest"
    if operator.quantisation is None and is_integer and reals_only and not is_exact:
        yield f"its kernel computes with reals, not with elements of type {dtype}"
    scales = () if operator.quantisation is None else operator.quantisation.inputs
    for position, scale in enumerate(scales):
        if _has_axis(scale) and (
            operator.kind in _ROWS or (operator.kind in _PER_CHANNEL and position == 0)
        ):
            yield f"input {position} has more than one scale, its kernel takes one"


def _has_axis(scale: Scale | None) -> bool:
    return scale is not None and scale.axis is not None
