"""What a tile of a group reads and costs, summed up by hand."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.regions import (
    group_macs,
    group_regions,
    group_work,
    kinds_to_run,
    network_macs,
)
from tests.frontend.running import loaded, model_of

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


def test_the_work_of_a_group_is_the_anchors_macs_and_all_vector_work(chain: Network) -> None:
    work = group_work(chain, chain.groups[0], ((0, 1), (0, 2), (0, 4), (0, 8)))
    assert dict(work.loops) == {"B": 1, "G": 1, "K": 2, "C": 3, "Y": 4, "X": 8, "R": 3, "S": 3}
    # The bias, the sum and the Relu: one operation per element each.
    assert work.vector == 3 * 64
    assert work.dtype == "float32"


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


def test_views_are_not_among_the_kinds_that_a_core_runs(tmp_path: Path) -> None:
    graph = "agraph (float[2,3,4] x) => (float[2,12] y) { f = Flatten(x) y = Relu(f) }"
    (group,) = loaded(tmp_path, graph).groups
    assert kinds_to_run(group) == {"Relu"}


def test_macs_of_a_network_are_those_of_its_groups(chain: Network) -> None:
    assert group_macs(chain, chain.groups[0]) == 4 * 64 * 3 * 9
    assert network_macs(chain) == 4 * 64 * 3 * 9


def test_a_network_without_products_has_no_macs(tmp_path: Path) -> None:
    network = loaded(tmp_path, model_of("agraph (float[4] x) => (float[4] y) { y = Exp(x) }"))
    assert network_macs(network) == 0


cuts = st.lists(st.integers(1, 7), max_size=2, unique=True).map(lambda c: [0, *sorted(c), 8])


@settings(max_examples=50, deadline=None, derandomize=True)
@for_all(rows=cuts, columns=cuts, part=st.integers(1, 2))
def test_tiles_and_parts_share_the_work_exactly(
    chain: Network, rows: list[int], columns: list[int], part: int
) -> None:
    (group,) = chain.groups
    macs = 0
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            for reduction in ((0, part), (part, 3)):
                box = ((0, 1), (0, 4), (top, bottom), (left, right))
                product = 1
                for _, trips in group_work(chain, group, box, reduction).loops:
                    product *= trips
                macs += product
    assert macs == group_macs(chain, group)
    assert group_regions(chain, group, whole((1, 4, 8, 8)))["x"] == whole((1, 3, 8, 8))
