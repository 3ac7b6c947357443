"""The columns of pairs: what is read from them, what is refused, and what comes back."""

from itertools import combinations
from random import Random

import pytest

from spmilp.errors import FileError
from spmilp.packing import PackingProblem, check_packing, minimise
from spmilp.packing.minimalloc import Table, parse_table, text_with_offsets


def table(*lines: str, header: str = "id,lower,upper,size,apart,together") -> Table:
    return parse_table("\n".join([header, *lines]).encode(), "some.csv")


def problem(found: Table) -> PackingProblem:
    return PackingProblem(
        items=found.items, capacity=None, apart=found.apart, together=found.together
    )


def test_one_buffer_of_a_pair_names_the_other_or_both_do() -> None:
    found = table("a,0,1,4,b  c,", "b,2,3,4,a,c", "c,4,5,4,,", "d,6,7,4,,")
    assert found.apart == ((0, 1), (0, 2))
    assert found.together == ((1, 2),)


def test_ids_with_spaces_commas_and_quotes_are_named_in_quotes() -> None:
    found = table('"a, ""1""",0,1,4,,', 'b b,2,3,4,"""a, """"1""""""",', 'c,4,5,4,,"""b b"""')
    assert found.ids == ('a, "1"', "b b", "c")
    assert (found.apart, found.together) == (((0, 1),), ((1, 2),))


def test_without_the_columns_or_with_empty_cells_there_are_no_pairs() -> None:
    assert table("a,0,1,4", header="id,lower,upper,size").apart == ()
    assert table("a,0,1,4, ,", "b,0,1,4,,").together == ()


BAD = [
    (("a,0,1,4,x,",), 2, "apart names 'x', and no buffer has that id"),
    (("a,0,1,4,,", "b,0,1,4,,b"), 3, "together names 'b', the id of the line itself"),
    (('a,0,1,4,"""b",', "b,0,1,4,,"), 2, "apart '\"b' is no list of ids"),
    (("a,0,1,4,b,", "b,0,1,4,,a"), 3, "'a' of line 2 must lie together with 'b' of line 3"),
    (("a,0,1,4,,b", "b,0,1,4,,c", "c,0,1,4,a,"), 4, "'a' of line 2 must lie together with 'c'"),
]


@pytest.mark.parametrize(("lines", "line", "says"), BAD)
def test_a_pair_that_cannot_be_is_refused_with_its_line(
    lines: tuple[str, ...], line: int, says: str
) -> None:
    with pytest.raises(FileError) as caught:
        table(*lines)
    assert str(caught.value).startswith(f"some.csv, line {line}: ")
    assert says in str(caught.value)


FULL = "id,lower,upper,size,offset,alignment,together"
CANNOT = [
    (("a,0,1,4,0,,b", "b,2,3,4,8,,"), 3, "'a' of line 2 at 0 B and 'b' of line 3 at 8 B"),
    (("a,0,1,4,4,,b", "b,2,3,4,,8,"), 3, "at 4 B, no multiple of 8 B"),
    (
        (f"a,0,1,4,,{3**30},b", f"b,2,3,4,,{2**30},"),
        3,
        f"need a multiple of {3**30 * 2**30} B, 2^60 B or more",
    ),
]


@pytest.mark.parametrize(("lines", "line", "says"), CANNOT)
def test_buffers_that_cannot_lie_together_are_refused_with_both_numbers(
    lines: tuple[str, ...], line: int, says: str
) -> None:
    with pytest.raises(FileError) as caught:
        table(*lines, header=FULL)
    assert str(caught.value).startswith(f"some.csv, line {line}: ")
    assert says in str(caught.value)


@pytest.mark.full
def test_what_is_written_is_read_again_with_the_same_pairs() -> None:
    for seed in range(20):
        random = Random(seed)
        names = [f"buffer {k}" if k % 2 else f"b{k}" for k in range(random.randint(2, 8))]
        pairs = list(combinations(range(len(names)), 2))
        chosen = random.sample(pairs, min(len(pairs), random.randint(1, 6)))
        apart, together = sorted(chosen[1:]), [chosen[0]]
        lines = [
            f"{name},{k},{random.randint(k + 1, 12)},{random.randint(1, 9)},"
            + ",".join(
                " ".join(f'""{names[b]}""' for a, b in some if a == k).join(('"', '"'))
                for some in (apart, together)
            )
            for k, name in enumerate(names)
        ]
        first = table(*lines)
        assert (list(first.apart), list(first.together)) == (apart, together)
        least = minimise(problem(first))
        assert least.offsets is not None
        assert check_packing(problem(first), least.offsets) == []
        again = parse_table(text_with_offsets(first, least.offsets).encode(), "again.csv")
        assert (again.apart, again.together) == (first.apart, first.together)
        assert tuple(item.offset for item in again.items) == least.offsets
