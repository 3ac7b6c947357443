"""What a tile of a group reads and costs, summed up by hand."""

from pathlib import Path

import pytest

from spmilp.frontend.graph import Network
from spmilp.frontend.regions import (
    group_regions,
)
from tests.frontend.running import loaded

CHAIN = """
agraph (float[1,3,8,8] x, float[4,3,3,3] w, float[4] b, float[1,4,8,8] r) => (float[1,4,8,8] y)
{ c = Conv<pads=[1,1,1,1]>(x, w, b) s = Add(c, r) y = Relu(s) }
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Network:
    return loaded(tmp_path_factory.mktemp("chain"), CHAIN)


def test_a_tile_reads_its_halo_and_no_padding(chain: Network) -> None:
    box = ((0, 1), (1, 3), (0, 4), (4, 8))
    assert group_regions(chain, chain.groups[0], box) == {
        "y": box,
        "s": box,
        "c": box,
        "r": box,
        "x": ((0, 1), (0, 3), (0, 5), (3, 8)),
        "w": ((1, 3), (0, 3), (0, 3), (0, 3)),
        "b": ((1, 3),),
    }


def test_a_part_of_the_reduction_limits_only_what_the_anchor_reads(chain: Network) -> None:
    box = ((0, 1), (0, 4), (0, 8), (0, 8))
    regions = group_regions(chain, chain.groups[0], box, (0, 2))
    assert regions["x"] == ((0, 1), (0, 2), (0, 8), (0, 8))
    assert regions["w"] == ((0, 4), (0, 2), (0, 3), (0, 3))
    assert regions["r"] == box
    assert "b" not in regions


def test_two_readers_of_a_tensor_need_what_covers_both(tmp_path: Path) -> None:
    graph = """
    agraph (float[4,6] x) => (float[4,3] y)
    <int64[1] zero = {0}, int64[1] three = {3}, int64[1] six = {6}, int64[1] one = {1}>
    { a = Slice(x, zero, three, one) b = Slice(x, three, six, one) y = Add(a, b) }
    """
    network = loaded(tmp_path, graph)
    regions = group_regions(network, network.groups[0], ((1, 2), (0, 1)))
    assert regions["x"] == ((1, 2), (0, 4))


def test_an_operand_that_a_tile_does_not_touch_is_missing(tmp_path: Path) -> None:
    graph = """
    agraph (float[2,3] a, float[2,3] b) => (float[4,3] y)
    { j = Concat<axis=0>(a, b) y = Relu(j) }
    """
    network = loaded(tmp_path, graph)
    regions = group_regions(network, network.groups[0], ((0, 2), (0, 3)))
    assert regions["a"] == ((0, 2), (0, 3))
    assert "b" not in regions
