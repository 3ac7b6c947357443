"""The CSV of buffers: what is read from it, and what is written back."""

from pathlib import Path

import pytest

from spmilp.packing import Item
from spmilp.packing.minimalloc import (
    Table,
    parse_table,
    text_with_offsets,
    write_table,
)

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
"""The example of MiniMalloc's README, which fits in 12 bytes."""


def table(text: str) -> Table:
    return parse_table(text.encode(), "some.csv")


def only(text: str) -> Item:
    (item,) = table(text).items
    return item


def test_the_columns_are_found_by_their_names_in_any_order() -> None:
    found = table("size, UPPER,id,hint,lower\n4,3,b1,-1,0\n5,9,b2,8,3\n")
    assert found.ids == ("b1", "b2")
    assert found.items == (
        Item(size=4, lifetimes=((0, 3),)),
        Item(size=5, lifetimes=((3, 9),)),
    )


def test_an_offset_fixes_a_buffer_and_an_empty_cell_does_not() -> None:
    found = table("id,lower,upper,size,offset\na,0,3,4,8\nb,0,3,4,\n")
    assert [item.offset for item in found.items] == [8, None]


def test_gaps_divide_a_lifetime() -> None:
    item = only("id,lower,upper,size,gaps\na,0,20,4,15-20 3-5 5-9\n")
    assert item.lifetimes == ((0, 3), (9, 15))


def test_an_end_is_the_last_instant_of_a_lifetime_and_of_its_gaps() -> None:
    item = only("buffer_id,start,end,size,gaps\na,0,19,4,3-4\n")
    assert item.lifetimes == ((0, 3), (5, 20))


def test_alignment_is_read_and_is_1_where_it_is_empty() -> None:
    found = table("id,lower,upper,size,alignment\na,0,3,4,64\nb,0,3,4,\n")
    assert [item.alignment for item in found.items] == [64, 1]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_a_byte_order_mark_and_empty_lines_do_not_matter(ends: str) -> None:
    text = "\ufeff" + EXAMPLE.replace("\n", ends) + ends + ends
    assert parse_table(text.encode(), "some.csv").items == table(EXAMPLE).items


def test_times_may_be_negative_and_names_may_be_any_words() -> None:
    found = table('id,lower,upper,size\n"größe, die ""erste""",-5,-2,4\n')
    assert found.ids == ('größe, die "erste"',)
    assert found.items[0].lifetimes == ((-5, -2),)


def test_a_header_alone_is_a_file_without_buffers() -> None:
    assert table("id,lower,upper,size\n").items == ()


def test_the_output_is_minimallocs() -> None:
    found = table(EXAMPLE)
    assert text_with_offsets(found, (8, 8, 4, 4, 0)) == (
        "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\nb5,0,21,4,0\n"
    )


def test_what_else_is_in_the_file_stays_as_it_was(tmp_path: Path) -> None:
    found = table("offset,note,size,id,lower,upper\r\n,x, 4 ,a,0,3\r\n7,,5,b,3,9\r\n")
    write_table(found, (16, 7), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == (
        b"offset,note,size,id,lower,upper\n16,x, 4 ,a,0,3\n7,,5,b,3,9\n"
    )


def test_an_offset_is_needed_for_each_row() -> None:
    with pytest.raises(ValueError, match="shorter"):
        text_with_offsets(table(EXAMPLE), (0, 4))
