"""What people read: the report, figures, and why a plan is slow or a problem has none."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

import pytest

import spmilp
from tests.acceptance.doors import MODELS, Run


def test_a_report_is_one_page_with_the_figures(tiny: Path, tmp_path: Path) -> None:
    result = spmilp.read(tiny)
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (packed,) = re.findall(r"[A-Za-z0-9+/=]{500,}", page)[:1]
    shown = gzip.decompress(b64decode(packed)).decode()
    assert f"{result.makespan:,} cycles" in shown
    assert "mm0" in shown
    assert "<script src" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def without_room(folder: Path) -> Path:
    """Return the file of a problem whose task needs more than any scratchpad has."""
    builder = spmilp.ProblemBuilder(spmilp.load_machine("mesh4x4"))
    x = builder.input("x", (64, 64), "int8")
    builder.output(builder.task("large", reads=[x], writes=("y", (8, 8), "int8"), cycles=9))
    spmilp.solve(builder.build(), solver="list").save(folder)
    content = json.loads((folder / "problem.json").read_text())
    for memory in content["machine"]["memories"]:
        if memory["kind"] == "spm":
            memory["size"] = 2048
    file = folder / "small.json"
    file.write_text(json.dumps(content))
    return file


def test_a_problem_without_a_plan_says_what_does_not_fit(run: Run, tmp_path: Path) -> None:
    file = without_room(tmp_path)
    solved = run("solve", file, "-o", "out")
    assert (solved.code, solved.out) == (4, "")
    assert "4160 B" in solved.err.replace(",", "")
    assert "2048 B" in solved.err.replace(",", "")
    ended = run("explain", file, "--json")
    assert (ended.code, ended.json["status"]) == (4, "infeasible")
    assert (ended.json["required"], ended.json["usable"]) == (4160, 2048)
    assert ended.json["remedies"]
    explained = spmilp.explain(file)
    assert "large" in str(explained)


def test_a_model_that_fits_no_scratchpad_says_what_would_help(run: Run) -> None:
    machine = spmilp.load_machine("mesh4x4").replace(spm="128")
    with pytest.raises(spmilp.SpmilpError, match=r"\d+ B"):
        spmilp.solve(MODELS / "autoencoder_f32.onnx", machine, solver="list")
