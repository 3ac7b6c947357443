"""Every way to break a machine file gives one message that says where and what."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.errors import ExitCode, FileError
from spmilp.machine.read import load_machine, read_machine
from tests.machine.small import SMALL, content, described, with_field

GONE = object()
"""In place of a value: the field is left out."""

RATE = {"rate_bytes_per_cycle": 1}


def said(data: bytes) -> str:
    """Return what is said of a file; nothing when it is read."""
    caught: FileError | None = None
    try:
        read_machine(data, "test.yaml")
    except FileError as error:
        caught = error
    if caught is None:
        return ""
    assert caught.exit_code == ExitCode.INVALID_INPUT
    assert str(caught).startswith("test.yaml: ")
    assert len(str(caught)) < 1000
    assert "\n" not in str(caught)
    return str(caught).removeprefix("test.yaml: ")


def link(source: str, target: str) -> list[dict[str, Any]]:
    return [{"source": source, "target": target, **RATE}]


ALIASES = {
    "pad": "scratchpads.0",
    "kind": "core_kinds.core",
    "ranges": "scratchpads.0.reserved_byte_ranges",
    "rate": "dram.0.rate_bytes_per_cycle",
    "to_dram": "core core_0_0: no engine moves data",
}
"""Beginnings of paths and messages in the table."""

WRONG: list[tuple[str, Any, str]] = [
    ("core_kinds", GONE, "core_kinds: is missing"),
    ("pad.dma.0.rate_bytes_per_cycle", GONE, "@pad.dma.0.rate_bytes_per_cycle: is missin"),
    ("pad.size_kib", -4, "@pad.size_kib: expected int >= 1; got -4"),
    ("pad.size_kib", "64", "@pad.size_kib: expected int | null; got '64'"),
    ("pad.size_kib", 10**30, "@pad.size_kib: expected int <= 281474976710656"),
    ("pad.size_bytes", 4, "@pad: give one of size_bytes, size_kib, size_mib"),
    ("pad.size_kib", 2**43, "@pad: a size of 9007199254740992 B exceeds 281474976710656 B"),
    ("pad.size_kb", 4, "@pad.size_kb: unknown field; did you mean size_kib"),
    ("pad.alignment_bytes", 48, "memory spm_0_0: alignment 48 B, no power of 2"),
    ("ranges", [[0, 99999]], "memory spm_0_0: reserved up to 99999 B > size 6553"),
    ("ranges", [[0, 8], [4, 12]], "memory spm_0_0: reserved [4, 12) begins before"),
    ("rate", 0, "dram.0: rate_bytes_per_cycle: expected a number > 0; got 0"),
    ("rate", "3/0", "@rate: expected a positive numbe"),
    ("rate", "1/1009", "@rate: expected a fraction who"),
    ("rate", GONE, "dram.0: a DRAM with sites needs rate_bytes_per_cycle"),
    ("dram.0.sites", ["r_9_9"], "dram dram: no site is called r_9_9"),
    ("dram.0.name", "r_1_1", "r_1_1 names a memory and a router"),
    ("dram", [{}], "@to_dram from dram to its memory spm_0_0; add a link"),
    ("topology.type", "hypercube", "topology.type: expected one of mesh, torus, opposed_tori, r"),
    ("topology", {"type": "bus", "rate_bytes_per_cycle": 1}, "dram dram: no site is called r_0_0"),
    ("links", link("r_0_0", "r_0_0"), "link r_0_0 -> r_0_0: leads from a node to itself"),
    ("links", link("r_0_0", "r_1_0"), "two links lead from r_0_0 to r_1_0"),
    ("links", link("r_0_0", "r_0_9"), "link r_0_0 -> r_0_9: no router or memory is called "),
    ("pad.cores", {"cora": 1}, "scratchpads spm: no core kind cora; did you mean core?"),
    ("pad.dma", GONE, "@to_dram from dram to its memory spm_0_0; add a "),
    ("pad.dma.0.stores", False, "@to_dram from its memory spm_0_0 to dram"),
    ("pad.dma.0.reaches", ["drum"], "engine dma_0_0: reaches no memory called drum; did you mean"),
    ("kind.lanes", {"int9": 1}, "@kind.lanes: expected one of float32, float16, int8; got "),
    ("kind.launch", 4, "@kind.launch: unknown field; did you mean launch_cycles?"),
    ("core_kinds", {"a b": {}}, "core_kinds: expected str matching"),
    ("provenance", [{"fields": ["top.colums"], "source": "x"}], "provenance: no field top.colums"),
]


@pytest.mark.parametrize(("path", "value", "expected"), WRONG)
def test_a_broken_file_is_told(path: str, value: Any, expected: str) -> None:
    first, *rest = path.split(".")
    fields = content()
    fields["core_kinds"] = {"core": fields["core_kinds"]["core"], "good": {}}
    changed = with_field(fields, ".".join((ALIASES.get(first, first), *rest)), value, GONE)
    full = re.sub(r"^@(\w+)", lambda found: ALIASES[found[1]], expected)
    assert said(yaml.safe_dump(changed, sort_keys=False).encode()).startswith(full)


def test_other_mistakes_need_two_fields() -> None:
    wide = with_field(content(), "topology.columns", 1000)
    with pytest.raises(FileError, match="topology: 1000000 sites, expected at most 65536"):
        described(with_field(wide, "topology.rows", 1000))
    twice = content()
    twice["scratchpads"].append({**content()["scratchpads"][0], "name": "other"})
    with pytest.raises(FileError, match="the core name core_0_0 is given 2 times"):
        described(twice)
    bare = with_field(content(), "topology", {"type": "links", "routers": ["r_0_0"]})
    with pytest.raises(FileError, match="scratchpads spm: give its link, this topology has none"):
        described(bare)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "expected the fields of a machine"),
        (b"just words", "expected the fields of a machine"),
        (
            b"- a\n- b\n",
            "expected the fields of a machine (name, core_kinds, scratchpads, dram), got",
        ),
        (b"name: [unclosed", "no valid YAML"),
        (b"a: b: c", "no valid YAML at line 1"),
        (b"\xff\xff", "no valid YAML"),
        (b"name: \x07", "no valid YAML"),
        (b"name: !!python/object/apply:os.system ['true']", "no valid YAML"),
        (b"[" * 1500, "no valid YAML"),
        (b"name: " + b"9" * 5000, "no valid YAML"),
        (b"name: 2000-13-45", "no valid YAML"),
        (b"{[1]: 2}", "no valid YAML"),
        (b'name: "x\\ud800y"', "no valid YAML: 'utf-8' codec can't encode character"),
        (b"1: 2", "1: unknown field"),
        (
            SMALL.encode() + b"name: again\n",
            "no valid YAML at line 15: the field name is given twice",
        ),
        (b"&a [*a]", "no valid YAML at line 1: aliases are not read"),
        (SMALL.encode() + b"links: [&a {}, *a]", "no valid YAML at line 15: aliases are not read"),
    ],
)
def test_what_is_no_machine_file_is_told(data: bytes, expected: str) -> None:
    assert said(data).startswith(expected)


def test_files_are_found_by_path_and_presets_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SMALL)
    assert load_machine(tmp_path / "mine.yaml").machine.name == "small"
    with pytest.raises(FileError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load_machine(str(tmp_path / "nowhere.yaml"))
    with pytest.raises(FileError, match=r"'mesh44'.*did you mean mesh4x4"):
        load_machine("mesh44")
    with pytest.raises(FileError, match=r"there are blackhole, cell_be, .*xdna1"):
        load_machine("zzz")
    (tmp_path / "big.yaml").write_text("name: big\n" + "# x\n" * (1 << 19))
    with pytest.raises(FileError, match=r"big\.yaml: 2,097,162 B, expected at most 1,048,576 B"):
        load_machine(tmp_path / "big.yaml")


JUNK = st.sampled_from(
    [
        *(None, True, -1, 0, 1, 3, 10**30, 1.5, -0.0, float("nan"), float("inf")),
        *("", "x", "*", "[", "r_0_0", "1/2", "\x00", "dram", [], [[]], {}, {"a": 1}, [1, "b"]),
    ]
)


def paths_in(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of every part of a file."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    inside = [((*path, str(key)), part) for key, part in parts]
    deeper = [paths_in(part, at) for at, part in inside if isinstance(part, dict | list)]
    return [at for at, _ in inside] + [at for some in deeper for at in some]


@pytest.mark.full
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.sampled_from(paths_in(content())), JUNK)
def test_a_field_of_any_content_gives_a_machine_or_a_message(
    path: tuple[str, ...], junk: object
) -> None:
    changed = with_field(content(), ".".join(path), copy.deepcopy(junk))
    said(yaml.safe_dump(changed).encode())
