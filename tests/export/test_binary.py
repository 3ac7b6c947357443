"""The binary file: what is written is read, and damage is noticed."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export.running_tables import Player
from export.subjects import inputs_of, lowered, replayed, subject
from spmilp.errors import FileError
from spmilp.export.binary import binary, parse_binary, read_binary
from spmilp.export.tables.all_tables import all_tables

SUBJECT = subject()
DATA = binary(SUBJECT)["plan.spmb"]


def sealed(body: bytes) -> bytes:
    """Return bytes with their size and checksum set right."""
    size = struct.pack("<I", len(body) + 4)
    body = body[:12] + size + body[16:]
    return body + struct.pack("<I", zlib.crc32(body))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "plan.spmb").write_bytes(DATA)
    blob, tables = read_binary(tmp_path / "plan.spmb"), all_tables(SUBJECT)
    assert [table.rows for table in blob.tables.tables] == [table.rows for table in tables.tables]
    assert blob.tables.words == tables.words
    assert blob.tables.texts == tables.texts
    assert blob.tables.image == tables.image
    assert blob.version == (1, 0)
    assert blob.tool == SUBJECT.stamp.tool
    assert blob.model_sha256 == "ab" * 32
    assert blob.machine_sha256 == "cd" * 32
    assert blob.plan_sha256 == SUBJECT.stamp.plan


def test_the_file_alone_runs_a_network() -> None:
    network = lowered("ds_cnn_int8", 5, 1)
    blob = parse_binary(binary(network)["plan.spmb"], "blob")
    inputs = inputs_of(network)
    outputs = Player(blob.tables).run(inputs)
    for name, expected in replayed(network, inputs).items():
        assert outputs[name].tobytes() == expected.tobytes()


def test_sections_begin_at_multiples_of_8() -> None:
    index, _, count = struct.unpack_from("<III", DATA, 8)
    assert index == 144
    for number in range(count):
        _, offset, rows, stride = struct.unpack_from("<IIII", DATA, index + 16 * number)
        assert offset % 8 == 0
        assert offset + rows * stride <= len(DATA) - 4


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.data())
def test_changed_bytes_are_noticed(data: st.DataObject) -> None:
    changed = bytearray(DATA)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(DATA) - 1))
        changed[place] ^= data.draw(st.integers(1, 255))
    if bytes(changed) != DATA:
        with pytest.raises(FileError):
            parse_binary(bytes(changed), "blob")


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(0, len(DATA) - 1))
def test_a_file_that_is_cut_off_is_noticed(length: int) -> None:
    with pytest.raises(FileError):
        parse_binary(DATA[:length], "blob")


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.integers(16, 700), st.binary(min_size=1, max_size=8))
def test_a_sealed_file_with_a_wild_section_table_is_refused_or_read(
    place: int, bytes_: bytes
) -> None:
    changed = DATA[:place] + bytes_ + DATA[place + len(bytes_) : -4]
    with suppress(FileError):
        parse_binary(sealed(changed), "blob")


def test_another_major_version_is_refused_and_a_newer_minor_one_read() -> None:
    with pytest.raises(FileError, match=r"version 2\.0, expected 1\.x"):
        parse_binary(sealed(DATA[:4] + struct.pack("<HH", 2, 0) + DATA[8:-4]), "blob")
    newer = parse_binary(sealed(DATA[:4] + struct.pack("<HH", 1, 7) + DATA[8:-4]), "blob")
    assert newer.version == (1, 7)


def test_longer_rows_of_a_newer_version_are_read_as_far_as_they_are_known() -> None:
    index, _, count = struct.unpack_from("<III", DATA, 8)
    code, offset, rows, stride = struct.unpack_from("<IIII", DATA, index)
    assert (code, rows, count > 1) == (1, 1, True)
    longer = DATA[offset : offset + stride] + b"more" * 2
    body = bytearray(DATA[:-4])
    struct.pack_into("<IIII", body, index, code, len(body), rows, stride + 8)
    blob = parse_binary(sealed(bytes(body) + longer), "blob")
    assert blob.tables.of("summary").rows == all_tables(SUBJECT).of("summary").rows


def test_another_file_is_refused_with_how_it_begins() -> None:
    with pytest.raises(FileError, match="no SPMB file"):
        parse_binary(b"\x7fELF" + bytes(500), "blob")
