"""Finds the geometry of an operator by its ONNX type."""

from collections.abc import Mapping

from spmilp.cached import cached
from spmilp.frontend.graph import Network, Operator, Tensor
from spmilp.frontend.operators import elementwise, moves, products, reductions, resize, windows
from spmilp.frontend.operators.geometry import Geometry

_BY_KIND: Mapping[str, type[Geometry]] = {
    kind: family
    for module in (elementwise, moves, products, reductions, resize, windows)
    for family in module.FAMILIES
    for kind in family.kinds
}

_RUN_AS: Mapping[str, str] = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}


def core_operator(kind: str) -> str:
    """Return the operator type that a machine's cores must run for operators of a type."""
    return _RUN_AS.get(kind, kind)


def family_of(kind: str) -> type[Geometry]:
    """Return the family of an ONNX operator type; a ``ValueError`` if there is none."""
    if kind not in _BY_KIND:
        raise ValueError(f"operator {kind} is not supported")
    return _BY_KIND[kind]


class Geometries(dict[Operator, Geometry]):
    """The geometries of the operators of a network, each made when it is first asked for."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._tensors = tensors

    def __missing__(self, operator: Operator) -> Geometry:
        inputs = [self._tensors[name] if name else None for name in operator.inputs]
        self[operator] = family_of(operator.kind)(operator, inputs)
        return self[operator]


@cached
def geometries(network: Network) -> Geometries:
    """Return the geometry of each operator; a ``ValueError`` says why one cannot be lowered."""
    return Geometries(network.tensors)


def known_kinds() -> frozenset[str]:
    """Return every ONNX operator type that has a family."""
    return frozenset(_BY_KIND)
