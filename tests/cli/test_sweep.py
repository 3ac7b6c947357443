"""``spmilp sweep`` from the command line."""

import csv
import json
import sys
from pathlib import Path

import pytest

from runs.small import write_files
from spmilp.errors import ExitCode
from tests.acceptance.doors import Run

SWEEP = ("sweep", "chain.onnx", "-m", "pair.yaml", "--solver", "list", "--jobs", "1")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_files(tmp_path)[0]


@pytest.mark.full
def test_rows_are_written_and_the_smallest_of_a_range_is_found(run: Run, model: Path) -> None:
    ended = run(*SWEEP, "--spm", "4k", "--pareto", "makespan,spm", "--json")
    assert (ended.code, ended.err) == (0, "")
    (row,) = ended.json["rows"]
    assert (row["spm"], row["solver"], row["pareto"]) == (4096, "list", True)
    (written,) = csv.DictReader(Path("out/sweep-chain/sweep.csv").read_text().splitlines())
    assert written["makespan"] == str(row["makespan"])

    again = run(*SWEEP, "--target", "makespan=5000", "--spm", "3k:4k:1k")
    assert again.code == 0
    assert "is the smallest found for makespan 5,000" in again.out
    none = run(*SWEEP, "--target", "makespan=10", "--spm", "3k:4k:1k")
    assert none.code == ExitCode.LIMIT_WITHOUT_PLAN
    assert "no plan can: 2,048 at least" in none.out


@pytest.mark.full
def test_pins_hold_in_every_row_and_a_row_without_what_they_name_says_so(
    run: Run, model: Path
) -> None:
    Path("pins.yaml").write_text("forbid_cores: core_1")
    count = ("--set", "scratchpads.spm.count=1,2", "--spm", "8k", "--pins", "pins.yaml", "--json")
    one, two = run(*SWEEP, *count).json["rows"]

    assert one["status"] == "failed"
    assert "there is no core core_1" in one["reason"]
    assert two["status"] in ("optimal", "feasible")
    folder = Path("out/sweep-chain/rows") / two["row"]
    assert json.loads((folder / "problem.json").read_text())["pins"] == {"forbidden": [1]}


def test_without_dask_the_message_says_what_to_install(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ended = run("sweep", "chain.onnx", "--scheduler", "tcp://nobody:1")
    assert ended.code == ExitCode.USAGE
    assert "pip install 'spmilp[sweep]'" in ended.err
