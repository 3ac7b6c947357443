"""Suite files: what they stand for, and what is said of bad ones."""

from fractions import Fraction
from pathlib import Path

import pytest

from spmilp.bench.read import list_suites, load_suite, read_suite, solvers_named
from spmilp.bench.suite import SOLVE, Built, Generated, ModelOnMachine, ProblemFile, Suite, Tiles
from spmilp.errors import FileError, SpmilpError
from spmilp.machine.changed import Scale
from spmilp.problem.objective import Quantity

ROOT = Path(__file__).parents[2]


def suite(text: str, folder: str = "here") -> Suite:
    return read_suite(text.encode(), "test", "test.yaml", Path(folder))


def names(text: str) -> list[str]:
    return [row.name for row in suite(text).rows]


def test_a_list_stands_for_every_combination() -> None:
    text = """
solvers: [list]
rows:
  - model: [onnx:light_squeezenet, nets/small.onnx]
    machine: [edge16, chips/mine.yaml]
    dram: [1, "1/3"]
    spm: 0.25
"""
    rows = suite(text).rows
    assert len(rows) == 8
    assert [row.name for row in rows[:3]] == [
        "light_squeezenet-edge16-spm0.25",
        "light_squeezenet-edge16-dram1of3-spm0.25",
        "light_squeezenet-mine-spm0.25",
    ]
    assert rows[-1].source == ModelOnMachine(
        model=str(Path("here/nets/small.onnx")),
        machine=str(Path("here/chips/mine.yaml")),
        scale=Scale(dram=Fraction(1, 3), spm=Fraction(1, 4)),
    )


def test_an_entry_goes_before_the_suite() -> None:
    text = """
solvers: [list, cpsat]
seeds: [0, 1]
time_limit_seconds: 30
rows:
  - {generated: {tasks: 8, cores: 2}, solvers: [list], time_limit_seconds: 5, workers: 2}
  - {generated: {tasks: 9, cores: 2}, gap: 0.01, objective: energy}
"""
    own, usual = suite(text).rows
    assert (own.solvers, own.seeds, own.time_limit, own.workers) == (("list",), (0, 1), 5, 2)
    assert usual.solvers == ("list", "cpsat")
    assert (usual.time_limit, usual.gap, usual.objective) == (30, 0.01, Quantity.ENERGY)


def test_sources_of_every_sort() -> None:
    text = """
solvers: [list]
rows:
  - problem: some/a.json
  - generated: {tasks: [8, 16], cores: 2, seed: 3}
  - builder: somebody-elses
    peer: {name: Other 1.0, value: 15340, source: its log}
  - {model: m.onnx, machine: edge16, dims: {batch: 4}, tiles: [first, search]}
  - {problem: b.json, objective: [makespan, energy]}
"""
    found = suite(text)
    assert [row.source for row in found.rows[:4]] == [
        ProblemFile(Path("here/some/a.json")),
        Generated(tasks=8, cores=2, seed=3),
        Generated(tasks=16, cores=2, seed=3),
        Built("somebody-elses"),
    ]
    assert found.rows[3].peer is not None
    assert found.rows[3].peer.value == 15340
    assert [row.name for row in found.rows[4:]] == [
        *("m-batch4-edge16", "m-batch4-edge16-searched", "b-makespan", "b-energy")
    ]
    searched = found.rows[5].source
    assert isinstance(searched, ModelOnMachine)
    assert searched.tiles is Tiles.SEARCH


def test_a_pattern_stands_for_the_files_that_match(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.txt"):
        (tmp_path / name).touch()
    text = "{solvers: [list], rows: [{problem: '*.json'}]}"
    assert [row.name for row in suite(text, str(tmp_path)).rows] == ["a", "b"]


def test_solve_is_left_out_where_there_is_no_network() -> None:
    text = """
solvers: [solve, list]
rows:
  - generated: {tasks: 8, cores: 2}
  - {model: onnx:light_squeezenet, machine: edge16}
"""
    assert [row.solvers for row in suite(text).rows] == [("list",), ("solve", "list")]


def test_patterns_of_solvers() -> None:
    found = solvers_named(("list", "greedy:*/layer_by_layer", "greedy:contiguous/*", SOLVE))
    assert found[0] == "list"
    assert found[-1] == SOLVE
    assert "greedy:round_robin/layer_by_layer" in found
    assert len(set(found)) == len(found)
    with pytest.raises(SpmilpError, match="no solver is named 'nothing\\*'"):
        solvers_named(("nothing*",))


ROW = "rows: [{generated: {tasks: 8, cores: 2}}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows: [", "no valid YAML at line"),
        ("- 1", "expected the fields of a suite"),
        (ROW, "solvers: is missing"),
        ("{solvers: [list]}", "rows: is missing"),
        ("{solvers: [list], rows: []}", "rows: "),
        (f"{{solvers: [nobody], {ROW}}}", "no solver is named 'nobody'"),
        (f"{{solvers: ['list;rm'], {ROW}}}", "solvers.0: "),
        (f"{{solvers: [list], time_limit_seconds: 0, {ROW}}}", "time_limit_seconds: "),
        (f"{{solvers: [list], time_limit_seconds: .inf, {ROW}}}", "time_limit_seconds: "),
        (f"{{solvers: [list], seeds: [-1], {ROW}}}", "seeds.0: "),
        (f"{{solvers: [list], solver: [list], {ROW}}}", "unknown field; did you mean solvers"),
        ("{solvers: [list], rows: [{}]}", "give one of problem, model"),
        (
            "{solvers: [list], rows: [{problem: a.json, builder: b}]}",
            "there is problem and builder",
        ),
        ("{solvers: [list], rows: [{model: a.onnx}]}", "model needs a machine"),
        ("{solvers: [list], rows: [{problem: a.json, spm: 2}]}", "spm goes with model"),
        (
            "{solvers: [list], rows: [{model: a.onnx, machine: m, dram: 0}]}",
            "rows.0.dram.0: expected a number > 0",
        ),
        ("{solvers: [list], rows: [{model: a.onnx, machine: m, tiles: best}]}", "rows.0.tiles.0"),
        (
            "{solvers: [list], rows: [{problem: a.json}, {problem: b/a.json}]}",
            "two rows are",
        ),
        ("{solvers: [list], rows: [{problem: '*.nothing'}]}", "no file in"),
        (
            "{solvers: [list], rows: [{generated: {tasks: 0, cores: 2}}]}",
            "rows.0.generated.tasks",
        ),
    ],
)
def test_a_bad_suite_is_refused_with_the_field_and_what_is_expected(text: str, said: str) -> None:
    with pytest.raises(FileError) as caught:
        suite(text)
    assert str(caught.value).startswith("test.yaml: ")
    assert said in str(caught.value)


def test_an_unknown_suite_is_told_the_names() -> None:
    with pytest.raises(FileError, match="did you mean tiny"):
        load_suite("tini")
    with pytest.raises(FileError, match=r"no-such\.yaml"):
        load_suite("no-such.yaml")


@pytest.mark.parametrize("name", list_suites())
def test_the_suites_of_the_package_can_be_read_and_say_what_they_are(name: str) -> None:
    found = load_suite(name)
    assert found.rows
    assert found.description
    assert found.name == name
