"""Every way to break a machine file gives one message that says where and what."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from spmilp.errors import ExitCode, FileError
from spmilp.machine.read import load_machine, read_machine
from tests.machine.small import SMALL, content, described

Change = Callable[[dict], object]


def said(fields: dict) -> str:
    with pytest.raises(FileError) as caught:
        described(fields)
    assert caught.value.exit_code == ExitCode.INVALID_INPUT
    message = str(caught.value)
    assert message.startswith("test.yaml: ")
    return message


def spm(fields: dict) -> dict:
    return fields["scratchpads"][0]


CHANGES: list[tuple[str, Change, str]] = [
    ("missing field", lambda f: f.pop("core_kinds"), "core_kinds: is missing"),
    (
        "missing rate",
        lambda f: spm(f)["dma"][0].pop("rate_bytes_per_cycle"),
        "scratchpads.0.dma.0.rate_bytes_per_cycle: is missing",
    ),
    (
        "negative size",
        lambda f: spm(f).update(size_kib=-4),
        "scratchpads.0.size_kib: expected int >= 1; got -4",
    ),
    (
        "two sizes",
        lambda f: spm(f).update(size_bytes=4),
        "scratchpads.0: give one of size_bytes, size_kib, size_mib",
    ),
    ("no size", lambda f: spm(f).pop("size_kib"), "give one of size_bytes"),
    (
        "misspelt field",
        lambda f: spm(f).update(size_kb=4),
        "scratchpads.0.size_kb: unknown field; did you mean size_kib",
    ),
    ("text for a number", lambda f: spm(f).update(size_kib="64"), "expected int | null; got '64'"),
    ("truth for a number", lambda f: spm(f).update(size_kib=True), "expected int | null; got True"),
    (
        "huge number",
        lambda f: spm(f).update(size_kib=10**30),
        "expected int <= 281474976710656",
    ),
    (
        "alignment no power of 2",
        lambda f: spm(f).update(alignment_bytes=48),
        "memory spm_0_0: alignment 48 B, no power of 2",
    ),
    (
        "reserved beyond the end",
        lambda f: spm(f).update(reserved_byte_ranges=[[0, 99999]]),
        "memory spm_0_0: reserved up to 99999 B > size 65536 B",
    ),
    (
        "empty reserved range",
        lambda f: spm(f).update(reserved_byte_ranges=[[8, 8]]),
        "byte range [8, 8) is empty",
    ),
    (
        "reserved ranges that overlap",
        lambda f: spm(f).update(reserved_byte_ranges=[[0, 8], [4, 12]]),
        "memory spm_0_0: reserved [4, 12) begins before 8, where the last one ends",
    ),
    (
        "a size beyond every sum in 64 bits",
        lambda f: spm(f).update(size_kib=None, size_mib=8796093022207),
        "scratchpads.0: a size of 9223372036853727232 B exceeds 281474976710656 B",
    ),
    (
        "a link from a node to itself",
        lambda f: f.update(
            links=[{"source": "r_0_0", "target": "r_0_0", "rate_bytes_per_cycle": 1}]
        ),
        "link r_0_0 -> r_0_0: leads from a node to itself",
    ),
    (
        "zero rate",
        lambda f: f["dram"][0].update(rate_bytes_per_cycle=0),
        "dram.0: rate_bytes_per_cycle: expected a number > 0; got 0",
    ),
    ("negative rate", lambda f: f["dram"][0].update(rate_bytes_per_cycle=-1), "; got -1"),
    ("rate over zero", lambda f: f["dram"][0].update(rate_bytes_per_cycle="3/0"), "; got '3/0'"),
    ("infinite rate", lambda f: f["dram"][0].update(rate_bytes_per_cycle=float("inf")), "got inf"),
    (
        "too fine a rate",
        lambda f: f["dram"][0].update(rate_bytes_per_cycle="1/1009"),
        "denominator is at most 1000",
    ),
    (
        "unknown topology",
        lambda f: f["topology"].update(type="hypercube"),
        "topology.type: expected one of mesh, torus, opposed_tori, ring, bus, crossbar, tree, "
        "links; got 'hypercube'",
    ),
    (
        "topology too large",
        lambda f: f["topology"].update(columns=1000, rows=1000),
        "topology: 1000000 sites, expected at most 65536",
    ),
    (
        "too many memories",
        lambda f: (f["topology"].update(columns=20, rows=20), spm(f).update(count=1000)),
        "more than 65536 memories",
    ),
    (
        "unknown site",
        lambda f: f["dram"][0].update(sites=["r_9_9"]),
        "dram dram: no site is called r_9_9",
    ),
    (
        "unknown kind",
        lambda f: spm(f).update(cores={"cora": 1}),
        "scratchpads spm: no core kind cora; did you mean core?",
    ),
    (
        "unknown memory reached",
        lambda f: spm(f)["dma"][0].update(reaches=["drum"]),
        "engine dma_0_0: reaches no memory called drum; did you mean dram?",
    ),
    (
        "unknown end of a link",
        lambda f: f.update(
            links=[{"source": "spm_0_0", "target": "spm_0_9", "rate_bytes_per_cycle": 1}]
        ),
        "link spm_0_0 -> spm_0_9: no router or memory is called spm_0_9; did you mean spm_0_",
    ),
    (
        "two links between two nodes",
        lambda f: f.update(
            links=[{"source": "r_0_0", "target": "r_1_0", "rate_bytes_per_cycle": 1}]
        ),
        "two links lead from r_0_0 to r_1_0",
    ),
    (
        "two cores of one name",
        lambda f: f["scratchpads"].append({**spm(f), "name": "other"}),
        "the core name core_0_0 is given 2 times",
    ),
    (
        "a memory called like a router",
        lambda f: f["dram"][0].update(name="r_1_1"),
        "r_1_1 names a memory and a router",
    ),
    (
        "unknown data type",
        lambda f: f["core_kinds"]["core"].update(lanes={"int9": 1}),
        "core_kinds.core.lanes: expected one of float32, float16, int8; got 'int9'",
    ),
    ("no DRAM", lambda f: f.update(dram=[]), "dram: "),
    (
        "DRAM port without a rate",
        lambda f: f["dram"][0].pop("rate_bytes_per_cycle"),
        "a DRAM with sites needs rate_bytes_per_cycle",
    ),
    (
        "rate without a DRAM port",
        lambda f: f["dram"][0].pop("sites"),
        "a DRAM with rate_bytes_per_cycle needs sites",
    ),
    (
        "no engine",
        lambda f: spm(f).pop("dma"),
        "core core_0_0: no engine moves data from dram to its memory spm_0_0; add a link or an "
        "engine",
    ),
    (
        "no way back",
        lambda f: spm(f)["dma"][0].update(stores=False),
        "core core_0_0: no engine moves data from its memory spm_0_0 to dram",
    ),
    (
        "no link to the DRAM",
        lambda f: (f["dram"][0].pop("sites"), f["dram"][0].pop("rate_bytes_per_cycle")),
        "core core_0_0: no engine moves data from dram",
    ),
    (
        "no link of the topology's own",
        lambda f: f.update(topology={"type": "links", "routers": ["r_0_0"]}),
        "scratchpads spm: give its link, this topology has none of its own",
    ),
    (
        "provenance of nothing",
        lambda f: f.update(provenance=[{"fields": ["topology.colums"], "source": "x"}]),
        "provenance: no field topology.colums; did you mean topology.columns",
    ),
]


@pytest.mark.parametrize(
    ("change", "expected"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES]
)
def test_a_broken_file_is_told(change: Change, expected: str) -> None:
    fields = content()
    change(fields)
    message = said(fields)
    assert expected in message
    assert len(message) < 1000


def test_a_wrong_field_of_a_row_is_the_only_thing_said() -> None:
    fields = content()
    spm(fields)["colour"] = 1
    message = said(fields)
    assert message.startswith("test.yaml: scratchpads.0.colour: unknown field; known here: align")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"lanes": {"int8": 0}}, "core_kinds.core.lanes.int8: expected int >= 1; got 0"),
        ({"arrays": [{"dtype": "int8", "K": "4"}]}, "core_kinds.core.arrays.0.K: expected int"),
        ({"launch": 4}, "core_kinds.core.launch: unknown field; did you mean launch_cycles?"),
    ],
)
def test_the_kind_of_core_that_is_wrong_is_named(fields: dict, expected: str) -> None:
    assert expected in said({**content(), "core_kinds": {"good": {}, "core": fields}})


def test_the_name_that_is_wrong_is_said() -> None:
    assert "core_kinds: expected str matching" in (
        message := said({**content(), "core_kinds": {"a b": {}}})
    )
    assert message.endswith("; got 'a b'")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "expected the fields of a machine"),
        (b"just words", "expected the fields of a machine"),
        (b"- a\n- b\n", "got list"),
        (b"name: [unclosed", "no valid YAML"),
        (b"a: b: c", "no valid YAML at line 1"),
        (b"\xff\xff", "no valid YAML"),
        (b"name: \x07", "no valid YAML"),
        (b"name: !!python/object/apply:os.system ['true']", "no valid YAML"),
        (b"&a [*a]", "its aliases stand for"),
        (b"[" * 1500, "no valid YAML"),
        (b"name: " + b"9" * 5000, "no valid YAML"),
        (b"name: 2000-13-45", "no valid YAML"),
        (b"{[1]: 2}", "no valid YAML"),
        (rb'name: "x\ud800y"', r"no valid YAML: 'x\ud800y' has half a surrogate pair"),
        (b"1: 2", "1: unknown field"),
        (SMALL.encode() + b"name: again\n", "the field name is given twice"),
    ],
)
def test_what_is_no_machine_file_is_told(data: bytes, expected: str) -> None:
    with pytest.raises(FileError) as caught:
        read_machine(data, "test.yaml")
    assert str(caught.value).startswith("test.yaml: ")
    assert expected in str(caught.value)


def test_a_file_that_contains_itself_is_told() -> None:
    data = SMALL.encode() + b"shared: &loop [*loop]\n"
    with pytest.raises(FileError, match="its aliases stand for more than"):
        read_machine(data, "test.yaml")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere\.yaml"):
        load_machine(str(tmp_path / "nowhere.yaml"))


def test_a_preset_that_does_not_exist_brings_near_names() -> None:
    with pytest.raises(FileError, match=r"'mesh44'.*did you mean mesh4x4"):
        load_machine("mesh44")
    with pytest.raises(FileError, match=r"there are cell_be, coolidge, .*xdna1"):
        load_machine("zzz")


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SMALL)
    assert load_machine(str(file)).machine.name == "small"


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    + ["name: *a8"]
)


def test_aliases_that_stand_for_too_much_are_refused() -> None:
    with pytest.raises(FileError, match="its aliases stand for more than 1,000,000 values"):
        read_machine(BOMB.encode(), "test.yaml")


@pytest.mark.full
def test_lists_in_lists_without_end_are_refused() -> None:
    with pytest.raises(FileError, match="no valid YAML: "):
        read_machine(b"name: " + b"[" * 5000, "test.yaml")


def test_aliases_may_be_used() -> None:
    fields = content()
    text = yaml.safe_dump(fields | {"links": [(link := {"source": "r_0_0"}), link]})
    assert "*" in text
    with pytest.raises(FileError, match=r"links\.0\.rate_bytes_per_cycle: is missing"):
        read_machine(text.encode(), "test.yaml")


def test_a_file_that_would_take_minutes_to_read_is_refused_with_both_numbers(
    tmp_path: Path,
) -> None:
    file = tmp_path / "big.yaml"
    file.write_text("name: big\n" + "# x\n" * (1 << 19))
    with pytest.raises(FileError, match=r"big\.yaml: 2,097,162 B, expected at most 1,048,576 B"):
        load_machine(file)
