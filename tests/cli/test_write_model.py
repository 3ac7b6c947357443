"""``spmilp solve --write-model``."""

from pathlib import Path

from spmilp.problem.file import write_problem
from tests.acceptance.doors import Run
from tests.solvers.tiny_problems import tiny_problem


def test_the_model_is_written_beside_the_plan(run: Run) -> None:
    write_problem(tiny_problem(4), Path("problem.json"))

    ended = run("solve", "problem.json", "--solver", "milp", "--write-model", "model.mps", "--json")

    assert ended.code == 0
    assert (ended.json["status"], ended.json["solver"]) == ("optimal", "milp")
    assert "model.mps" in ended.json["files"]
    assert Path("model.mps").read_text().splitlines()[-1] == "ENDATA"


def test_a_suffix_of_no_model_ends_the_command_before_it_solves(run: Run) -> None:
    write_problem(tiny_problem(4), Path("problem.json"))

    ended = run("solve", "problem.json", "--write-model", "model.xml")

    assert ended.code == 3
    assert "model.xml: a model is written as .mps or .lp" in ended.err
    assert not Path("out").exists()
