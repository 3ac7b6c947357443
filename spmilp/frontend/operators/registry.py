"""Finds the family of an operator by its ONNX type."""

from collections.abc import Mapping

from spmilp.frontend.operators import elementwise, moves, products, reductions, resize, windows
from spmilp.frontend.operators.family import Family

_BY_KIND: Mapping[str, Family] = {
    kind: family()
    for module in (elementwise, moves, products, reductions, resize, windows)
    for family in module.FAMILIES
    for kind in family.kinds
}

_RUN_AS: Mapping[str, str] = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}


def core_operator(kind: str) -> str:
    """Return the operator type that a machine's cores must run for operators of a type."""
    return _RUN_AS.get(kind, kind)


def find_family(kind: str) -> Family | None:
    """Return the family of an ONNX operator type; ``None`` when there is none."""
    return _BY_KIND.get(kind)


def family_of(kind: str) -> Family:
    """Return the family of an ONNX operator type.

    Raises
    ------
    ValueError
        If there is none.
    """
    family = find_family(kind)
    if family is None:
        raise ValueError(f"operator {kind} is not supported")
    return family


def known_kinds() -> frozenset[str]:
    """Return every ONNX operator type that has a family."""
    return frozenset(_BY_KIND)
