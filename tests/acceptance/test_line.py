"""From ONNX to a plan that two checkers accept, saved and read again."""

from pathlib import Path

import pytest

import spmilp
from tests.acceptance.doors import MACHINES, MODELS
from tests.checker.mutations.verdicts import of_second

QUICK = {"batch": 1, "sequence": 16}
LINES: list[tuple[str, str, dict[str, int] | None]] = [
    ("ds_cnn_int8", "gap9", None),
    ("autoencoder_int8", "gap8", None),
    ("tiny_gru_f32", "vdla", None),
    ("gpt2_block_f32", "stream_quad", None),
    ("bert_tiny_f32", "vdla", QUICK),
]
MORE: list[tuple[str, str, dict[str, int] | None]] = [
    ("resnet8_int8", "gap9", None),
    ("tiny_lstm_f32", "edge16", None),
    ("mobilenetv1_025_f32", "vdla", None),
]
SLOW = ("epiphany4", "occamy", "set_8x8", "sw26010_cg")
"""Machines on which the autoencoder takes a quarter of a minute."""


def model_of(name: str) -> Path:
    return MODELS / f"{name}.onnx"


def assert_the_line_holds(
    model: str, machine: str, dim: dict[str, int] | None, folder: Path, twin: bool = True
) -> None:
    result = spmilp.solve(model_of(model), machine, dim=dim, solver="list", time_limit=5)
    assert str(result.status) in ("optimal", "feasible")
    assert result.violations == ()
    assert result.plan is not None
    assert result.makespan is not None
    assert result.objective == result.makespan
    assert result.bound is not None
    assert result.bound <= result.makespan
    assert (str(result.status) == "optimal") == (result.bound == result.makespan)
    written = result.save(folder)
    assert {path.name for path in written} == {"problem.json", "plan.json"}

    again = spmilp.read(folder)
    assert again.violations == ()
    assert (again.makespan, again.bound) == (result.makespan, result.bound)
    for measure in ("dram_traffic", "energy", "peak_spm", "gap", "bound_source"):
        assert getattr(again, measure) == getattr(result, measure), measure
    assert spmilp.check(again.problem, again.plan) == ()
    if twin:
        problem, plan = folder / "problem.json", folder / "plan.json"
        assert of_second(problem.read_bytes(), plan.read_bytes()) == frozenset()

    before = {path.name: path.read_bytes() for path in written}
    again.save(folder / "again")
    assert {name: (folder / "again" / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(("model", "machine", "dim"), LINES, ids=lambda case: str(case))
def test_a_network_becomes_a_plan_that_both_checkers_accept(
    model: str, machine: str, dim: dict[str, int] | None, tmp_path: Path
) -> None:
    assert_the_line_holds(model, machine, dim, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("model", "machine", "dim"), MORE, ids=lambda case: str(case))
def test_more_networks_become_plans_that_both_checkers_accept(
    model: str, machine: str, dim: dict[str, int] | None, tmp_path: Path
) -> None:
    assert_the_line_holds(model, machine, dim, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("machine", sorted({*MACHINES} - {each[1] for each in (*LINES, *MORE)}))
def test_a_network_has_a_plan_on_every_other_machine(machine: str, tmp_path: Path) -> None:
    model = "tiny_lstm_f32" if machine in SLOW else "autoencoder_int8"
    assert_the_line_holds(model, machine, None, tmp_path, twin=False)


def test_a_table_of_figures_shows_what_was_found(tiny: Path) -> None:
    result = spmilp.read(tiny)
    text = str(result)
    assert f"{result.makespan:,} cycles" in text
    assert len(text) < 1500
    assert "<table>" in result._repr_html_()
    assert result.tasks["end"].max() <= result.makespan
    assert set(result.tasks["core_name"]) <= set(result.cores["name"])
    assert len(result.residencies) == result.memories["residencies"].sum()
    assert {"source", "bytes", "start", "end"} <= set(result.transfers.columns)


def test_a_model_whose_dimensions_are_not_bound_is_refused_by_name() -> None:
    with pytest.raises(spmilp.SpmilpError, match=r"batch|sequence"):
        spmilp.solve(MODELS / "bert_tiny_f32.onnx", "vdla", solver="list")


def test_the_public_names_are_those_of_the_documentation() -> None:
    public = ("ProblemBuilder", "Result", "SpmilpError", "bound", "check", "compare", "explain")
    public += ("load_machine", "load_problem", "pack", "read", "solve", "solver", "sweep")
    assert sorted(spmilp.__all__) == sorted(public)
    assert set(dir(spmilp)) == {*public, "__version__"}
    assert all(len(getattr(spmilp, name).__doc__) > 40 for name in public)
    with pytest.raises(AttributeError, match="'slove'"):
        _ = spmilp.slove
