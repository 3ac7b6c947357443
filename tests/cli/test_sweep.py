"""``spmilp sweep`` from the command line."""

import csv
import json
from pathlib import Path

import pytest

from runs.small import write_files
from spmilp.errors import ExitCode
from tests.acceptance.doors import Run

SWEEP = """
models: chain.onnx
machines: pair.yaml
spm: 4k,8k
solver: list
time_limit: 20s
pareto: [makespan, spm]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    files = write_files(tmp_path)
    (tmp_path / "mine.yaml").write_text(SWEEP)
    return files[0]


@pytest.mark.full
def test_a_file_is_swept_with_options_in_place_of_what_it_says(run: Run, model: Path) -> None:
    ended = run("sweep", "mine.yaml", "--spm", "4k", "--jobs", "1", "--json")
    assert (ended.code, ended.err) == (0, "")
    (row,) = ended.json["rows"]
    assert (row["spm"], row["solver"], row["pareto"]) == (4096, "list", True)
    folder = Path("out/sweep-mine")
    (written,) = csv.DictReader((folder / "sweep.csv").open())
    assert written["makespan"] == str(row["makespan"])
    assert (folder / "pareto.png").stat().st_size > 1000

    again = run("sweep", "mine.yaml", "--jobs", "1", "--target", "makespan=4000", "--spm", "3k:4k")
    assert again.code == 0
    assert "is the smallest found for makespan 4,000" in again.out
    none = run("sweep", "mine.yaml", "--jobs", "1", "--target", "makespan=10", "--spm", "3k:4k")
    assert none.code == ExitCode.LIMIT_WITHOUT_PLAN
    assert "no plan can: 2,048 at least" in none.out


@pytest.mark.full
def test_pins_hold_in_every_row_and_a_row_without_what_they_name_says_so(
    run: Run, model: Path
) -> None:
    Path("pins.yaml").write_text("forbid_cores: core_1")
    count = ("--set", "scratchpads.spm.count=1,2", "--spm", "8k", "--jobs", "1", "--json")
    Path("mine.yaml").write_text(f"{SWEEP}pins: pins.yaml\n")
    one, two = run("sweep", "mine.yaml", *count).json["rows"]

    assert one["status"] == "failed"
    assert "there is no core core_1" in one["reason"]
    assert two["status"] in ("optimal", "feasible")
    folder = Path("out/sweep-mine/rows") / two["row"]
    assert json.loads((folder / "problem.json").read_text())["pins"] == {"forbidden": [1]}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("mine.yaml", "chain.onnx"), 2, "mine.yaml is a whole sweep; leave chain.onnx out"),
        (("chain.onnx", "--spm", "lots"), 2, "spm=lots: 'lots' is no size in bytes"),
        (("chain.onnx", "--set", "topology"), 2, "expected FIELD=VALUES"),
        (("chain.onnx", "--set", "a=1", "--set", "a=2"), 2, "--set a is given twice"),
        (("chain.onnx", "-m", "pair.yaml", "--set", "drams.x=1"), 2, "there are core_kinds, dram"),
        (("chain.onnx", "--solver", "nobody"), 2, "nobody: there are"),
        (("chain.onnx", "-m", "nowhere"), 3, "machine 'nowhere': no preset of this name"),
        (("absent.onnx",), 3, "no model file absent.onnx"),
        (("problem.json",), 2, "problem.json is a problem, which carries its machine"),
        (("chain.onnx", "--target", "speed=3"), 2, "target speed=3: there are makespan"),
        (("chain.onnx", "--target", "makespan=3"), 2, "give one field a range"),
        (("chain.onnx", "--scheduler", "tcp://x:1", "--jobs", "2"), 2, "leave jobs out"),
        (("wrong.yaml",), 3, "spms: unknown field; did you mean spm?"),
    ],
)
def test_wrong_usage_is_explained_and_nothing_is_solved(
    run: Run, model: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    Path("wrong.yaml").write_text("models: chain.onnx\nspms: 4k\n")
    ended = run("sweep", *arguments)
    assert ended.code == code
    assert said in ended.err.replace("\n", " ")
    assert not list(Path().glob("out/*/rows"))


def test_without_dask_the_message_says_what_to_install(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.runs.cluster.find_spec", lambda name: None)
    ended = run("sweep", "mine.yaml", "--jobs", "2")
    assert ended.code == ExitCode.USAGE
    assert "pip install 'spmilp[sweep]'" in ended.err
    assert "--jobs 1" in ended.err
