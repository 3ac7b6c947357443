"""``import spmilp``: every line of the first example of the documentation runs."""

from dataclasses import replace
from inspect import signature
from pathlib import Path

import pytest

import spmilp
from spmilp.cli.solve import solve as command
from spmilp.errors import ArgumentError
from spmilp.options import WORKERS, Options
from spmilp.plan.file import plan_bytes
from spmilp.processes import processors
from spmilp.runs.points import settings_of
from tests.acceptance.doors import MODELS, Run

MODEL = MODELS / "autoencoder_int8.onnx"


@pytest.fixture(scope="module")
def result() -> spmilp.Result:
    return spmilp.solve(MODEL, "mesh4x4", solver="list", time_limit="60s")


@pytest.fixture(scope="module")
def folder(result: spmilp.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved")
    result.save(place)
    return place


def test_names_are_text_in_a_notebook(result: spmilp.Result) -> None:
    name = "<script>alert(1)</script>&"
    problem = replace(result.problem, machine=replace(result.problem.machine, name=name))
    shown = replace(result, problem=problem)._repr_html_()

    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in shown


def test_a_replay_knows_the_model(result: spmilp.Result, folder: Path) -> None:
    assert result.replay()["within"].all()
    read = spmilp.read(folder)
    with pytest.raises(spmilp.SpmilpError, match="needs the model"):
        read.replay()
    with pytest.raises(spmilp.SpmilpError, match="not the model of this problem"):
        read.replay(MODELS / "ds_cnn_int8.onnx")
    assert read.replay(MODEL, seed=3)["within"].all()


def test_without_a_plan_the_reason_is_said(tmp_path: Path) -> None:
    b = spmilp.ProblemBuilder("mesh4x4", name="large")
    x = b.input("x", (1024, 1024), "int8")
    b.output(b.task("t", reads=[x], writes=("y", 8, "int8"), cycles=1))
    none = spmilp.solve(b.build(), solver="list")

    assert (none.status, none.plan, none.objective, none.gap) == ("infeasible", None, None, None)
    assert "1048" in none.reason
    assert none.reason in repr(none)
    for ask in (lambda: none.tasks, none.timeline, lambda: none.save(tmp_path), none.replay):
        with pytest.raises(spmilp.SpmilpError, match="1048"):
            ask()


def test_energy_is_no_objective_on_a_machine_that_states_none() -> None:
    builder = spmilp.ProblemBuilder("occamy")
    x = builder.input("x", (16,))
    builder.output(builder.task("t", reads=x, writes=("y", 16, "int8"), cycles=5))
    problem = builder.build()
    with pytest.raises(ArgumentError, match=r"machine occamy states no energies.*mac_energy_fj"):
        spmilp.solve(problem, solver="list", objective="energy")
    with pytest.raises(ArgumentError, match="objective energy: machine occamy"):
        spmilp.solve("onnx:light_squeezenet", "occamy", objective="energy")
    task = replace(problem.tasks[0], energy=tuple(7 for _ in problem.machine.kinds))
    stated = replace(problem, tasks=(task,))
    assert spmilp.solve(stated, solver="list", objective="energy").energy == 7


def test_solve_has_the_arguments_of_the_command_line() -> None:
    cli_only = {"context", "source", "strict_gap", "output", "write_model", "as_json"}
    cli_only |= {"quiet"}
    of_command = set(signature(command).parameters) - cli_only
    assert of_command == set(signature(spmilp.solve).parameters) - {"model", "observer"}


def test_a_solve_has_a_worker_for_each_processor_and_a_row_of_a_sweep_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(WORKERS)
    assert Options.of({}).workers == processors()
    assert settings_of({})["workers"] == 1
    monkeypatch.setenv(WORKERS, "3")
    assert [Options.of({"workers": given}).workers for given in (None, 2)] == [3, 2]
    assert [settings_of({"workers": given})["workers"] for given in (None, 2)] == [1, 2]


def test_the_command_gives_the_same_plan_byte_for_byte(run: Run, tmp_path: Path) -> None:
    options = ("--solver", "list", "--seed", "3", "--time-limit", "none", "-o", tmp_path / "out")
    assert run("solve", MODEL, "-m", "gap9", *options).code == 0
    answer = spmilp.solve(MODEL, "gap9", solver="list", seed=3, time_limit=None)
    again = spmilp.solve(answer.problem, solver="list", seed=3, time_limit=None)
    for each in (answer, again):
        assert each.plan is not None
        assert (tmp_path / "out/plan.json").read_bytes() == plan_bytes(each.plan, each.problem)
