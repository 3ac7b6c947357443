"""Dynamic dimensions are bound by name."""

from pathlib import Path

import pytest

from spmilp.errors import SpmilpError
from tests.frontend.running import loaded, model_of

DYNAMIC = "agraph (float[batch,seq,4] x) => (float[batch,seq,4] y) { y = Relu(x) }"
STATIC = "agraph (float[2] x) => (float[2] y) { y = Relu(x) }"


def test_bound_dimensions_reach_the_output(tmp_path: Path) -> None:
    network = loaded(tmp_path, DYNAMIC, {"batch": 2, "seq": 5})
    assert network.tensors["y"].shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("graph", "given", "reason"),
    [
        (DYNAMIC, {"batch": 2}, r"length of seq is not known; give --dim seq=\.\.\."),
        (DYNAMIC, {"btach": 2, "seq": 1}, r"no dimension 'btach'.*are batch, seq"),
        (DYNAMIC, {"batch": 0, "seq": 1}, "batch is 0, expected > 0"),
        (STATIC, {"batch": 2}, "none of its dimensions is dynamic"),
    ],
)
def test_a_wrong_length_is_told(
    tmp_path: Path, graph: str, given: dict[str, int], reason: str
) -> None:
    with pytest.raises(SpmilpError, match=reason):
        loaded(tmp_path, graph, given)


def test_a_dimension_without_name_goes_by_input_and_axis(tmp_path: Path) -> None:
    model = model_of(DYNAMIC)
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    with pytest.raises(SpmilpError, match=r"--dim x\.0="):
        loaded(tmp_path, model, {"seq": 5})
    assert loaded(tmp_path, model, {"seq": 5, "x.0": 3}).tensors["y"].shape == (3, 5, 4)


def test_shapes_computed_from_a_bound_dimension_are_static(tmp_path: Path) -> None:
    graph = """
    agraph (float[batch,4,3] x) => (float[a,b] y)
    <int64[1] zero = {0}, int64[1] minus = {-1}>
    {
        s = Shape(x)
        n = Gather(s, zero)
        t = Concat<axis=0>(n, minus)
        r = Reshape(x, t)
        y = Relu(r)
    }
    """
    network = loaded(tmp_path, graph, {"batch": 2})
    assert network.tensors["y"].shape == (2, 12)
    assert len(network.groups) == 1
