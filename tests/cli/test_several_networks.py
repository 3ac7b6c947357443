"""Several networks in one stream: rates, deadlines, shared weights, and each with its own model."""

import re
from pathlib import Path
from typing import Any

import pytest

import spmilp
from spmilp.errors import ArgumentError, FileError
from spmilp.plan.latencies import latencies
from spmilp.watch import Observer
from tests.acceptance.doors import Run
from tests.runs.small import write_files

QUICK: dict[str, Any] = {"solver": "list", "effort": 2.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Return a short chain of products, a long one, and a machine of two cores."""
    folder = tmp_path_factory.mktemp("networks")
    long = write_files(folder, layers=4)[0].rename(folder / "long.onnx")
    model, machine = write_files(folder, layers=2)
    return model.rename(folder / "short.onnx"), long, machine


def solved(files: tuple[Path, Path, Path], **given: Any) -> tuple[spmilp.Result, list[str]]:
    """Return the stream of both networks, and warnings."""
    said = list[str]()
    short, long, machine = files
    observer = Observer(on_warning=said.append)
    found = spmilp.solve([long, short], machine, observer=observer, **{**QUICK, **given})
    assert found.violations == ()
    return found, [text for text in said if "at least" in text]


def test_rates_share_weights_and_every_inference_is_replayed(
    run: Run, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    short, long, machine = files
    rates = ("--rate", "short=2", "--deadline", "short=100000", "--deadline", "long=200000")
    given = ("-m", machine, *rates, "--solver", "list", "--effort", "2", "--json")
    answer = run("solve", long, short, *given, "-o", tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert [
        (each["network"], each["rate"], each["shortfall"]) for each in answer.json["networks"]
    ] == [("short", 2, 0), ("long", 1, 0)]
    read = spmilp.read(tmp_path)
    assert read.data()["networks"] == answer.json["networks"]
    # Its two weights are alike, and so are one.
    assert sorted(one.name for one in read.problem.tensors if "short" in one.name) == [
        *("short/w0", "short@0/x", "short@0/y1", "short@1/x", "short@1/y1")
    ]
    models = ("--model", short, "--model", long)
    outputs = run("replay", tmp_path / "plan.json", *models, "--json").json["outputs"]
    assert all(each["within"] for each in outputs)
    begun = [each["name"] for each in outputs if each["inference"] == 3]
    assert begun == ["short@0/y1", "short@1/y1", "long/y3"]
    assert "no race, no deadlock" in run("check", tmp_path, "--commands").out
    shown = run("check", tmp_path).out
    assert re.search(r"short +[\d,]+ cycles +deadline 100,000 met; 2 inferences in a period", shown)
    explained = run("explain", tmp_path, "--json").json
    assert explained["networks"] == answer.json["networks"]
    text = run("explain", tmp_path).out
    assert re.search(r"Networks\n  short +[\d,]+ cycles  deadline 100,000", text)
    assert [name for name, *_ in read.rows()][4:6] == ["short", "long"]
    refused = run("replay", tmp_path / "plan.json", "--model", short)
    assert refused.code == 3
    assert "is of the networks short, long; give the model of each" in refused.err
    before = (tmp_path / "plan.json").read_bytes()
    run("solve", long, short, *given, "-o", tmp_path)
    assert (tmp_path / "plan.json").read_bytes() == before


def test_who_is_due_comes_first(files: tuple[Path, Path, Path]) -> None:
    free = {each.member.name: each.cycles for each in of(solved(files)[0])}
    for name, deadline in (("short", 3000), ("long", 5000)):
        found, said = solved(files, deadline={name: deadline})
        first, _ = of(found)
        assert first.member.name == name
        assert first.cycles <= deadline < free[name]
        assert said == []


def test_deadlines_that_cannot_be_kept_together_are_named(files: tuple[Path, Path, Path]) -> None:
    found, said = solved(files, deadline={"short": 3000, "long": 4500})
    for text in said:
        assert "deadlines short=3000, long=4500 cannot all be kept: together they take" in text
        assert 4500 < least(text) <= max(each.cycles for each in of(found))
    assert [text.partition(" with ")[2][:5] for text in said] == ["any t", "these"]


def least(text: str) -> int:
    """Return what is proven."""
    found = re.search(r"at least ([\d,]+) cycles", text)
    assert found is not None
    return int(found[1].replace(",", ""))


def of(found: spmilp.Result) -> Any:
    assert found.plan is not None
    return latencies(found.problem, found.plan)


@pytest.mark.parametrize("objective", ["period", "makespan"])
def test_a_deadline_that_none_can_keep_is_named(
    files: tuple[Path, Path, Path], objective: str
) -> None:
    found, said = solved(files, objective=objective, deadline={"short": 100})
    (short, long) = of(found)
    for text in said:
        assert "deadline short=100 is impossible: it takes" in text
        assert 100 < least(text) <= short.cycles
    assert short.shortfall == short.cycles - 100
    assert long.shortfall == 0
    missed = f"deadline 100 missed by {short.shortfall:,}"
    assert missed in str(found)
    assert missed in str(found.explain())
    assert (found.period is None) == (objective == "makespan")


def test_what_contradicts_itself_is_refused(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    short, long, machine = files
    for models, given, error in (
        ([short, short], {}, r"both called short; for several inferences .* --rate short=2"),
        ([short, long], {"rate": {"other": 2}}, r"rate other: there is no such network"),
        ([short], {"deadline": {"short": 0}}, r"deadline short=0: expected NAME=NUMBER of 1"),
        ([short, long], {"dim": {"batch": 1}}, r"dim batch: say of which network, as in short/"),
        ([short, "problem.json"], {}, "problem.json"),
        ([], {}, "there is no model"),
    ):
        with pytest.raises((ArgumentError, FileError), match=error):
            spmilp.solve(models, machine, **{**QUICK, **given})
