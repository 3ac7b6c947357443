"""The CSV of buffers: what is read from it, what is refused, and what is written back."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.errors import FileError
from spmilp.packing import Item
from spmilp.packing.minimalloc import Table, parse_table, read_table, text_with_offsets

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
"""The example of MiniMalloc's README, which fits in 12 bytes."""


def table(text: str) -> Table:
    return parse_table(text.encode(), "some.csv")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (
            "size, UPPER,id,hint,lower\n4,3,b1,-1,0\n5,9,b2,8,3\n",
            (Item(size=4, lifetimes=((0, 3),)), Item(size=5, lifetimes=((3, 9),))),
        ),
        (
            "id,lower,upper,size,offset,alignment\na,-5,3,4,8,4\nb,0,3,4,,\n",
            (
                Item(size=4, lifetimes=((-5, 3),), offset=8, alignment=4),
                Item(size=4, lifetimes=((0, 3),)),
            ),
        ),
        (
            "id,lower,upper,size,gaps\na,0,20,4,15-20 3-5 5-9\n",
            (Item(size=4, lifetimes=((0, 3), (9, 15))),),
        ),
        ("id,lower,upper,size\n", ()),
    ],
    ids=["any order", "offsets", "gaps divide a lifetime", "none"],
)
def test_columns_are_found_by_their_names(text: str, items: tuple[Item, ...]) -> None:
    assert table(text).items == items


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends_a_byte_order_mark_and_empty_lines_do_not_matter(ends: str) -> None:
    text = "\ufeff" + EXAMPLE.replace("\n", ends) + ends + ends
    assert parse_table(text.encode(), "some.csv").items == table(EXAMPLE).items


def test_names_may_be_any_words() -> None:
    found = table('id,lower,upper,size\n"größe, die ""erste""",-5,-2,4\n')
    assert found.ids == ('größe, die "erste"',)


def test_the_output_is_minimallocs() -> None:
    found = table(EXAMPLE)
    assert text_with_offsets(found, (8, 8, 4, 4, 0)) == (
        "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\nb5,0,21,4,0\n"
    )


def test_what_else_is_in_the_file_stays_as_it_was() -> None:
    found = table("offset,note,size,id,lower,upper\r\n,x, 4 ,a,0,3\r\n7,,5,b,3,9\r\n")
    expected = "offset,note,size,id,lower,upper\n16,x, 4 ,a,0,3\n7,,5,b,3,9\n"
    assert text_with_offsets(found, (16, 7)) == expected


def test_an_offset_is_needed_for_each_row() -> None:
    with pytest.raises(ValueError, match="shorter"):
        text_with_offsets(table(EXAMPLE), (0, 4))


GOOD = b"id,lower,upper,size\nb1,0,3,4\n"


def message(data: bytes) -> str:
    with pytest.raises(FileError) as caught:
        parse_table(data, "some.csv")
    return str(caught.value)


BAD_LINES = [
    ("id,lower,upper\n", 1, "no column size"),
    ("b1,0,3,4\n", 1, "a first line that names the columns"),
    ("id,lower,upper,LOWER,size\n", 1, "two columns are named 'lower'"),
    ("id,lower,upper,size\nb1,0,3,-4\n", 2, "size is -4 B, expected 1 to"),
    ("id,lower,upper,size\n\nb1,5,5,4\n", 3, "lower 5 and upper 5"),
    ("id,lower,upper,size\nb1,0,3,4\nb1,3,9,4\n", 3, "id 'b1' is that of line 2 too"),
    ("id,lower,upper,size\n ,0,3,4\n", 2, "the id is empty"),
    ("id,lower,upper,size\nb\x1b[2J,0,3,4\n", 2, "control characters"),
    (f"id,lower,upper,size\nb1,0,{'9' * 5000},4\n", 2, "expected less than 2^60"),
    ("id,lower,upper,size\nb1,0,3,4.5\n", 2, "size is '4.5', expected a whole number"),
    ("id,lower,upper,size\nb1,0,3,٣\n", 2, "expected a whole number"),
    ("id,lower,upper,size\nb1,0,3\n", 2, "3 cells, but the first line has 4"),
    ("id,lower,upper,size\nb1,0,3,4\n# the end\n", 3, "1 cells"),
    ('id,lower,upper,size\n"b1,0,3,4\n', 2, "no line of a CSV file"),
    ("id,lower,upper,size,offset\nb1,0,3,4,-1\n", 2, "offset is -1 B"),
    ("id,lower,upper,size,alignment,offset\nb1,0,3,4,8,12\n", 2, "12 B is no multiple of 8 B"),
    ("id,lower,upper,size,alignment\nb1,0,3,4,0\n", 2, "alignment is 0 B"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3\n", 2, "not of the form 3-5"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3-6 5-7\n", 2, "overlaps another"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,0-9\n", 2, "leave nothing"),
    ("id,lower,upper,size,gaps\nb1,0,9,4,3-5@0:2\n", 2, "not of the form 3-5"),
    (f"id,lower,upper,size\nb1,0,3,{2**59}\nb2,0,3,{2**59}\n", 3, "2^60 B or more"),
]


@pytest.mark.parametrize(("text", "line", "says"), BAD_LINES)
def test_the_message_names_the_line_and_what_is_wrong(text: str, line: int, says: str) -> None:
    found = message(text.encode())
    assert found.startswith(f"some.csv, line {line}: ")
    assert says in found
    assert "\n" not in found
    assert len(found) < 300


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "some.csv: is empty"),
        (b"\r\n \n\n", "some.csv: is empty"),
        (GOOD.decode().encode("utf-16"), "some.csv, line 1: byte 0xff is not UTF-8"),
        (GOOD + "größe,0,3,4\n".encode("latin-1"), "some.csv, line 3: byte 0xf6 is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "some.csv, line 1: there is no column"),
        (b"\x89PNG\r\n\x1a\n\0\0", "some.csv, line 1: byte 0x89 is not UTF-8"),
    ],
)
def test_what_is_no_text_is_called_so(data: bytes, says: str) -> None:
    assert message(data).startswith(says)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"absent\.csv: cannot be read: No such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        read_table(tmp_path)
    with pytest.raises(FileError, match="/dev/zero: cannot be read: it is a device"):
        read_table("/dev/zero")


@pytest.mark.full
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*b'0123456789-,"\n\r @', *b"idlowerupsz", 0, 255]), max_size=40))
def test_any_bytes_are_read_or_refused_with_a_message(tail: list[int]) -> None:
    for start in (b"", GOOD, b"id,lower,upper,size,gaps,alignment,offset\n"):
        refused = ""
        try:
            parse_table(start + bytes(tail), "some.csv")
        except FileError as error:
            refused = str(error)
        assert refused == "" or refused.startswith("some.csv")
