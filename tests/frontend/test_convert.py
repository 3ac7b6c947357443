"""Nodes become operators with explicit attributes; what cannot is listed; dimensions are bound."""

from pathlib import Path

import pytest

from spmilp.errors import SpmilpError, UnsupportedOperatorError
from tests.frontend.running import loaded, model_of


def test_split_becomes_slices_and_unused_parts_vanish(tmp_path: Path) -> None:
    graph = """
    agraph (float[6,4] x) => (float[2,4] y)
    <int64[3] parts = {1, 2, 3}>
    { a, b, c = Split<axis=0>(x, parts) y = Relu(b) }
    """
    ((part, relu),) = (group.operators for group in loaded(tmp_path, graph).groups)
    assert (part.kind, relu.kind) == ("Slice", "Relu")
    assert part.attributes == {"starts": (1,), "ends": (3,), "axes": (0,), "steps": (1,)}


def test_everything_that_cannot_be_lowered_is_listed(tmp_path: Path) -> None:
    graph = """
    agraph (float[4] x, bool flag) => (float[4] y, int64[n,1] z, float[4] m, float[4] s)
    {
        z = NonZero(x)
        d = Dropout(x, half, flag)
        m = mystery.Magic(d)
        u, w = Unique<sorted=1>(x)
        s = Mul(x, x)
        y = If (flag) <
            then_branch = a_graph () => (float[4] a) { a = Relu(x) },
            else_branch = b_graph () => (float[4] b) { b = Sqrt(x) }
        >
    }
    """.replace("half", "x0")
    model = model_of(graph.replace("(x, x0, flag)", "(x, , flag)"))
    model.opset_import.add(domain="mystery", version=1)
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, model)
    reported = {kind: reason for _, kind, reason in raised.value.nodes}
    assert set(reported) == {"NonZero", "Dropout", "Magic", "If"}
    assert "domain mystery" in reported["Magic"]
    assert "depends on input flag; fix it: --input flag=" in reported["If"]
    assert "4 nodes cannot be lowered" in str(raised.value)


def test_an_operator_that_is_replaced_by_others_is_reported_by_its_own_name(
    tmp_path: Path,
) -> None:
    graph = """
    agraph (float[4] x, float[1,2,3] s) => (float[4] y, float[4] z, float[1,1,2,4] l)
    <float[1,16,3] w = {W}, float[1,16,4] r = {R}, float[1,12] p = {P}>
    {
        [noisy] y = Bernoulli<seed=1.0>(x)
        z = Relu(x)
        [memory] l, h, c = LSTM<hidden_size=4>(s, w, r, , , , , p)
    }
    """
    for letter, count in (("W", 48), ("R", 64), ("P", 12)):
        graph = graph.replace(f"{{{letter}}}", f"{{{', '.join(['0.5'] * count)}}}")
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, graph)
    reported = [(name, kind) for name, kind, _ in raised.value.nodes]
    assert reported == [("noisy", "Bernoulli"), ("memory", "LSTM")]


def test_a_tensor_without_elements_has_a_message_of_its_own(tmp_path: Path) -> None:
    graph = """
    agraph (float[4,8] x) => (float[4,0] y, float[4,8] z)
    <int64[1] none = {0}, int64[1] axis = {1}>
    { e = Slice(x, none, none, axis) y = Relu(e) z = Relu(x) }
    """
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, graph)
    ((name, kind, reason),) = raised.value.nodes
    assert (name, kind) == ("e", "Slice")
    assert "e of shape [4, 0] has no elements" in reason


def test_an_axis_of_an_input_without_elements_wants_a_length(tmp_path: Path) -> None:
    graph = "agraph (float[4,0] x) => (float[4,0] y) { y = Relu(x) }"
    with pytest.raises(SpmilpError, match=r"length of x\.1 is not known; give --dim x\.1="):
        loaded(tmp_path, graph)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (
            "agraph (float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) "
            "{ y, i = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x) }",
            "output 1 is used",
        ),
        ("agraph (string[2] x) => (string[2] y) { y = Identity(x) }", "data type string"),
        (
            "agraph (float[1] x) => (float[a,b] y) <int64[2] s = {1048576, 1048576}> "
            "{ c = ConstantOfShape(s) y = Add(c, x) }",
            r"c \(ConstantOfShape\): it gives 1099511627776 elements, expected at most",
        ),
        (
            "agraph (float[4] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }",
            "depends on data",
        ),
        (
            "agraph (float[4] x, int64[1] s, int64[1] e) => (float[a] y) { y = Slice(x, s, e) }",
            r"input 1 \(s\) is not constant",
        ),
    ],
)
def test_a_form_that_is_not_supported_is_reported(tmp_path: Path, graph: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        loaded(tmp_path, graph)


DYNAMIC = "agraph (float[batch,seq,4] x) => (float[batch,seq,4] y) { y = Relu(x) }"
SHARED = DYNAMIC.replace("batch", "q").replace("seq", "q")
STATIC = "agraph (float[2] x) => (float[2] y) { y = Relu(x) }"


@pytest.mark.parametrize(
    ("graph", "given", "reason"),
    [
        (DYNAMIC, {"batch": 2}, r"length of seq is not known; give --dim seq=\.\.\."),
        (DYNAMIC, {"btach": 2, "seq": 1}, r"no dimension 'btach'.*are batch, seq"),
        (DYNAMIC, {"batch": 0, "seq": 1}, "batch is 0, expected 1 to"),
        (STATIC, {"batch": 2}, "none of its dimensions is dynamic"),
        (SHARED, {}, r"length of q is not known; give --dim q=\.\.\.; of one axis .*x\.0="),
        (SHARED, {"x.2": 2}, r"no dimension 'x\.2'.*are q; of one axis alone, --dim x\.0="),
        (SHARED, {"x.0": 2}, "length of q is not known"),
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


@pytest.mark.parametrize("dims", [{"x.0": 3, "x.1": 5}, {"q": 3, "x.1": 5}])
def test_axes_that_share_a_name_may_have_lengths_of_their_own(
    tmp_path: Path, dims: dict[str, int]
) -> None:
    assert loaded(tmp_path, SHARED, dims).tensors["y"].shape == (3, 5, 4)


def test_a_constant_output_without_elements_is_left_out(tmp_path: Path) -> None:
    graph = """
    agraph (float[3,4] x) => (int64[0] s, float[3,4] y)
    { s = Shape<start=2, end=1>(x) y = Relu(x) }
    """
    assert loaded(tmp_path, graph).outputs == ("y",)
