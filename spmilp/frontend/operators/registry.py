"""Finds the family of an operator by its ONNX type."""

from collections.abc import Mapping

from spmilp.frontend.operators.batch_normalization import BatchNormalization
from spmilp.frontend.operators.concat import Concat
from spmilp.frontend.operators.conv import Conv
from spmilp.frontend.operators.conv_transpose import ConvTranspose
from spmilp.frontend.operators.cumsum import CumSum
from spmilp.frontend.operators.depth_space import DepthToSpace
from spmilp.frontend.operators.einsum import Einsum
from spmilp.frontend.operators.elementwise import Elementwise
from spmilp.frontend.operators.expand import Expand, Tile
from spmilp.frontend.operators.family import Family
from spmilp.frontend.operators.gather import Gather
from spmilp.frontend.operators.gemm import Gemm
from spmilp.frontend.operators.group_normalization import GroupNormalization
from spmilp.frontend.operators.layer_normalization import LayerNormalization
from spmilp.frontend.operators.lrn import LRN
from spmilp.frontend.operators.matmul import MatMul
from spmilp.frontend.operators.pad import Pad
from spmilp.frontend.operators.pool import GlobalPool, Pool
from spmilp.frontend.operators.quantise import Quantise
from spmilp.frontend.operators.reduce import Reduce
from spmilp.frontend.operators.reshape import Reshape
from spmilp.frontend.operators.resize import Resize
from spmilp.frontend.operators.slice import Slice
from spmilp.frontend.operators.softmax import Softmax
from spmilp.frontend.operators.transpose import Transpose
from spmilp.frontend.operators.trilu import Trilu

_FAMILIES: tuple[Family, ...] = (
    BatchNormalization(),
    Concat(),
    Conv(),
    ConvTranspose(),
    CumSum(),
    DepthToSpace(),
    Einsum(),
    Elementwise(),
    Expand(),
    Gather(),
    Gemm(),
    GlobalPool(),
    GroupNormalization(),
    LRN(),
    LayerNormalization(),
    MatMul(),
    Pad(),
    Pool(),
    Quantise(),
    Reduce(),
    Reshape(),
    Resize(),
    Slice(),
    Softmax(),
    Tile(),
    Transpose(),
    Trilu(),
)

_BY_KIND: Mapping[str, Family] = {kind: family for family in _FAMILIES for kind in family.kinds}


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
