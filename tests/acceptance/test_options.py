"""What a solve is asked for: objectives, pins, hints, sizes, tiles, limits, gaps and seeds."""

import time
from pathlib import Path

import pytest

import spmilp
from tests.acceptance.doors import MODELS, PROBLEMS, assert_valid

SMALL = PROBLEMS / "gru-12t-2c-crossbar-ample-balanced.json"
MODEL, MACHINE = MODELS / "ds_cnn_int8.onnx", "gap8"
OBJECTIVES = ("makespan", "dram_traffic", "energy", "peak_spm")


def by_list(**options: object) -> "spmilp.Result":
    return spmilp.solve(SMALL, **{"solver": "list", "time_limit": None, **options})


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_quantity_can_be_what_is_made_small(objective: str, tiny: Path) -> None:
    problem = tiny / "problem.json"
    result = spmilp.solve(problem, solver="list", objective=objective, time_limit=None)
    assert result.violations == ()
    assert result.objective == getattr(result, objective)
    assert result.bound <= result.objective
    other = spmilp.solve(problem, solver="list", objective="makespan")
    assert result.objective <= getattr(other, objective)


def test_pins_hold_and_wrong_names_are_named(tiny: Path, tmp_path: Path) -> None:
    pins = {
        "forbid_cores": ["core_0_0"],
        "tasks": [{"task": "mm1", "cores": ["core_3_3"], "not_before": 5000}],
    }
    result = spmilp.solve(tiny / "problem.json", solver="list", pins=pins)
    assert result.violations == ()
    tasks = result.tasks.set_index("name")
    assert "core_0_0" not in set(tasks["core_name"])
    assert tasks.loc["mm1", "core_name"] == "core_3_3"
    assert tasks.loc["mm1", "start"] >= 5000
    result.save(tmp_path)
    assert_valid(tmp_path)
    with pytest.raises(spmilp.SpmilpError, match="core_9_9"):
        spmilp.solve(tiny / "problem.json", solver="list", pins={"forbid_cores": ["core_9_9"]})


def test_a_hint_makes_the_answer_never_worse(tmp_path: Path) -> None:
    good = spmilp.solve(SMALL, solver="lns", time_limit=1)
    good.save(tmp_path)
    for hint in (good, tmp_path, tmp_path / "plan.json"):
        again = spmilp.solve(SMALL, solver="search", time_limit=0.2, hint=hint)
        assert again.violations == ()
        assert again.makespan <= good.makespan
    elsewhere = PROBLEMS / "mlp-8t-4c-bus-shared4-tight-compute.json"
    with pytest.raises(spmilp.SpmilpError):
        spmilp.solve(elsewhere, solver="search", time_limit=0.2, hint=tmp_path)


def test_sizes_of_dimensions_are_taken_by_name() -> None:
    makespans = [
        spmilp.solve(
            MODELS / "bert_tiny_f32.onnx", "vdla", solver="list", time_limit=20,
            dim={"batch": 1, "sequence": length},
        ).makespan
        for length in (8, 16)
    ]  # fmt: skip
    assert makespans[0] < makespans[1]
    with pytest.raises(spmilp.SpmilpError, match="bananas"):
        spmilp.solve(MODEL, MACHINE, dim={"bananas": 3})


@pytest.mark.parametrize("solver", ["auto", "cpsat", "milp", "residency"])
def test_an_effort_gives_the_same_bytes_however_quick_the_computer_is(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = "dram_traffic" if solver == "residency" else "makespan"
    asked = {"solver": solver, "objective": objective, "effort": 0.5}
    source = (MODEL, MACHINE) if solver == "auto" else (SMALL,)
    one = spmilp.solve(*source, **asked)
    assert one.ended_by == "effort"
    gone = time.monotonic()

    def hurried() -> float:
        nonlocal gone
        gone += 10.0
        return gone

    # A clock by which this computer is slow, for all that measures how long something takes.
    monkeypatch.setattr("spmilp.solvers.common.clock.monotonic", hurried)
    monkeypatch.setattr("time.perf_counter", hurried)
    other = spmilp.solve(*source, **asked, workers=2)
    assert other.plan == one.plan
    assert other.problem == one.problem


def test_a_time_limit_beside_an_effort_ends_the_search_and_the_answer_says_so() -> None:
    result = spmilp.solve(MODEL, MACHINE, effort="high", time_limit=1)
    assert result.ended_by == "time limit"
    assert result.violations == ()
    assert result.seconds < 30
    with pytest.raises(ValueError, match="effort 0"):
        spmilp.solve(SMALL, effort=0)


@pytest.mark.parametrize("tiles", ["first", "smaug"])
def test_tiles_are_chosen_as_asked(tiles: str) -> None:
    result = spmilp.solve(MODEL, MACHINE, solver="list", tiles=tiles, time_limit=20)
    assert result.violations == ()
    with pytest.raises(ValueError, match="tiles"):
        spmilp.solve(MODEL, MACHINE, solver="list", tiles="round")


@pytest.mark.full
def test_searched_tiles_are_no_worse_than_first_ones() -> None:
    first = spmilp.solve(MODEL, MACHINE, solver="list", tiles="first", time_limit=20)
    searched = spmilp.solve(MODEL, MACHINE, solver="list", tiles="search", time_limit=20)
    assert searched.makespan <= first.makespan


def test_a_limit_ends_a_search_in_time() -> None:
    problem = PROBLEMS / "residual-20t-4c-mesh2x2-nolinks-tight-compute.json"
    spmilp.solve(problem, solver="lns", time_limit=1)  # loads code
    began = time.monotonic()
    result = spmilp.solve(problem, solver="lns", time_limit=1)
    assert result.plan is not None
    assert time.monotonic() - began < 10
    with pytest.raises(ValueError, match="time_limit"):
        by_list(time_limit="soon")


def test_a_machine_is_changed_by_its_numbers() -> None:
    machine = spmilp.load_machine("mesh4x4").replace(spm="32KiB")
    small = spmilp.solve(MODELS / "autoencoder_int8.onnx", machine, solver="list", time_limit=20)
    assert small.violations == ()
    assert small.peak_spm <= 32 * 1024
    with pytest.raises(spmilp.SpmilpError, match=r"gap88"):
        spmilp.load_machine("gap88")


def test_solvers_are_compared_side_by_side() -> None:
    compared = spmilp.compare(
        {"small": SMALL}, solvers=("list", "greedy:locality/round_robin"), time_limit=2
    )
    assert set(compared.runs["solver"]) == {"list", "greedy:locality/round_robin"}
    assert len(compared.runs) == 2
    assert "list" in str(compared)
