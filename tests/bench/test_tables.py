"""Tables and summaries of records made by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from bench.made import SETTING, STATISTICS, record
from spmilp.bench.against import against
from spmilp.bench.sections import markdown, sections_of, settings_of
from spmilp.bench.summary import (
    BEST_GREEDY,
    baseline_frame,
    groups,
    instance_frame,
    summary_frame,
    wide_gaps,
    with_best_greedy,
)
from spmilp.bench.tables import COLUMNS, defects, progress_frame, runs_frame
from spmilp.comparison.run import Moment
from spmilp.errors import SpmilpError

TIGHT = replace(STATISTICS, problem_sha256="bb", kind="traffic-bound", tight=True)
OF_TIGHT = replace(SETTING, row_sha256="bb")
OWN_TILES = replace(STATISTICS, problem_sha256="cc", tasks=40)

RECORDS = (
    record("x", "list", 120, first=1.0),
    record("x", "auto", 100, first=2.0, bound=90),
    record("x", "greedy:contiguous/layer_by_layer", 150),
    record("x", "greedy:locality/critical_path", 130),
    record("x", "solve", 96, statistics=OWN_TILES, bound=40),
    record("y", "list", 400, first=6.0, statistics=TIGHT, bound=200, setting=OF_TIGHT),
    record("y", "auto", None, statistics=TIGHT, bound=240, peak_bytes=2**30, setting=OF_TIGHT),
    record(
        "y", "greedy:contiguous/layer_by_layer", 500, statistics=TIGHT, bound=200, setting=OF_TIGHT
    ),
)


def row(frame: pd.DataFrame, instance: str, solver: str) -> "pd.Series[object]":
    (found,) = (
        r for _, r in frame.iterrows() if (r["instance"], r["solver"]) == (instance, solver)
    )
    return found


def test_the_bound_is_the_best_that_any_solver_proved_on_the_same_problem() -> None:
    frame = runs_frame(RECORDS)

    assert list(frame.columns) == COLUMNS
    assert row(frame, "x", "auto")["bound"] == 100
    assert row(frame, "x", "auto")["own_bound"] == 90
    assert row(frame, "y", "list")["bound"] == 240
    assert row(frame, "y", "list")["gap"] == pytest.approx(0.4)
    assert row(frame, "y", "list")["ratio_to_bound"] == pytest.approx(400 / 240, abs=1e-6)


def test_solve_has_a_problem_and_a_bound_of_its_own() -> None:
    solved = row(runs_frame(RECORDS), "x", "solve")
    assert (solved["bound"], solved["bound_source"], solved["own_bound"]) == (50, "roofline", 40)
    assert (solved["tasks"], solved["roofline"]) == (40, 50)
    assert solved["roofline_gap"] == pytest.approx(46 / 96, abs=1e-6)


def test_times_and_integrals_are_those_of_the_course() -> None:
    frame = runs_frame(RECORDS)
    # 1 s without a plan, then 120 where 100 is known, until the limit of 10 s.
    assert row(frame, "x", "list")["primal_integral"] == pytest.approx(1 + 9 * 20 / 120)
    assert row(frame, "x", "list")["seconds_to_first"] == 1.0
    assert row(frame, "y", "auto")["primal_integral"] == 10
    assert row(frame, "y", "auto")["seconds_to_first"] is pd.NA
    assert row(frame, "x", "list")["peak_mib"] == 300


def test_the_progress_has_every_better_plan() -> None:
    history = tuple(
        Moment(seconds=at, objective=value, bound=1) for at, value in ((1.0, 9), (2.0, 9), (3.0, 7))
    )
    frame = progress_frame([record(objective=7, history=history)])
    assert frame[["seconds", "objective"]].to_numpy().tolist() == [[1.0, 9.0], [3.0, 7.0]]


def test_a_run_that_has_not_taken_place_has_no_figures() -> None:
    frame = runs_frame(
        [record(statistics=None, objective=None, bound=None, status="skipped", history=())]
    )
    for column in ("objective", "bound", "gap", "primal_integral", "seconds_to_first", "tight"):
        assert frame[column].isna().all()


def test_the_best_greedy_takes_the_best_rule_of_each_row() -> None:
    frame = with_best_greedy(runs_frame(RECORDS))
    best = frame[frame["solver"] == BEST_GREEDY]

    assert dict(zip(best["instance"], best["objective"], strict=True)) == {"x": 130, "y": 500}
    assert best["seconds_to_first"].isna().all()
    assert len(with_best_greedy(runs_frame(RECORDS[:2]))) == 2


def test_means_are_geometric_and_over_the_runs_with_a_plan() -> None:
    summary = summary_frame(runs_frame(RECORDS)).set_index("solver")
    ratio = (120 / 100 * 400 / 240) ** 0.5

    assert summary.loc["list", "ratio_to_bound"] == pytest.approx(ratio, abs=1e-6)
    assert summary.loc["list", "mean_gap"] == pytest.approx(1 - 1 / ratio, abs=1e-6)
    assert summary.loc["list", "worst_gap"] == pytest.approx(0.4)
    assert summary.loc["list", "ratio_to_roofline"] == pytest.approx((2.4 * 8) ** 0.5)
    assert summary.loc["list", "mean_roofline_gap"] == pytest.approx(1 - (2.4 * 8) ** -0.5)
    assert summary.loc["list", ["runs", "plans", "soon"]].tolist() == [2, 2, 1]
    assert summary.loc["list", "seconds_to_first"] == 3.5
    assert summary.loc["auto", ["runs", "plans", "proven"]].tolist() == [2, 1, 1]
    assert summary.loc["auto", "peak_mib"] == 1024


def test_baselines_are_compared_where_both_have_a_plan() -> None:
    ratios = baseline_frame(with_best_greedy(runs_frame(RECORDS)))

    assert ratios.loc["list", BEST_GREEDY] == pytest.approx((130 / 120 * 500 / 400) ** 0.5)
    assert ratios.loc["auto", BEST_GREEDY] == pytest.approx(1.3)
    assert ratios.loc["auto", "list"] == pytest.approx(1.2)
    assert ratios.loc["list", "auto"] == pytest.approx(1 / 1.2)


def test_a_quantity_that_vanishes_can_be_compared() -> None:
    bytes_moved = replace(STATISTICS, quantity="dram_traffic")
    runs = (("list", 0), ("auto", 3))
    zero = [record("x", name, value, bound=0, statistics=bytes_moved) for name, value in runs]
    frame = runs_frame(zero)

    assert row(frame, "x", "list")["ratio_to_bound"] == 1
    assert row(frame, "x", "auto")["ratio_to_bound"] == 4
    assert baseline_frame(frame).loc["list", "auto"] == 4


def test_rows_are_summarised_by_class() -> None:
    parts = dict(groups(runs_frame(RECORDS)))
    assert {name: set(part["instance"]) for name, part in parts.items()} == {
        "all rows": {"x", "y"},
        "balanced rows": {"x"},
        "rows with tight memory": {"y"},
    }


def test_each_instance_is_a_row_with_what_every_solver_found() -> None:
    table = instance_frame(with_best_greedy(runs_frame(RECORDS))).set_index("instance")

    assert list(table.index) == ["x", "y"]
    assert table.loc["x", ["list", "auto", "solve", BEST_GREEDY]].tolist() == [120, 100, 96, 130]
    assert table.loc["x", ["bound", "gap", "class"]].tolist() == [100, 0, "balanced"]
    assert table.loc["y", "class"] == "traffic-bound, tight"
    assert table.loc["y", "gap"] == pytest.approx(0.4)
    assert pd.isna(table.loc["y", "auto"])


def test_where_each_run_has_tiles_of_its_own_the_gaps_are_of_the_best_one() -> None:
    table = instance_frame(runs_frame([one for one in RECORDS if one.solver == "solve"]))

    assert table["instance"].tolist() == ["x"]
    assert table.loc[0, ["solve", "tasks", "bound", "class"]].tolist() == [96, 40, 50, "balanced"]
    assert table.loc[0, "gap"] == pytest.approx(46 / 96, abs=1e-6)


def test_an_instance_of_which_nothing_is_known_is_a_row_too() -> None:
    skipped = record("z", statistics=None, objective=None, bound=None, status="skipped", history=())
    frame = runs_frame([skipped])
    table = instance_frame(frame)

    assert table["instance"].tolist() == ["z"]
    assert table[["class", "bound", "gap"]].isna().all(axis=None)
    assert "| z | list | skipped |" in markdown(list(sections_of(frame)), "Benchmark", ["."])


def test_wide_gaps_name_the_best_run_of_an_instance() -> None:
    wide = wide_gaps(with_best_greedy(runs_frame(RECORDS)), 0.2)
    assert wide[["instance", "solver"]].to_numpy().tolist() == [["y", "list"]]


def test_a_plan_that_cannot_be_is_a_defect() -> None:
    below = [record("x", "list", 90, bound=80), record("x", "cpsat", 110, bound=100)]
    broken = record("y", "lns", None, status="rejected", violations=2, reason="overlap: 4 B")
    crashed = record("z", "lns", None, status="crashed", reason="ended by SIGSEGV")
    found = list(defects(runs_frame([*below, broken, crashed])))

    assert [each.partition(",")[0] for each in found] == ["z", "y", "x"]
    assert "valid plan of 90 below the bound 100" in found[2]
    assert list(defects(runs_frame(RECORDS))) == []


def test_the_page_shows_every_solver_and_the_runs_without_a_plan() -> None:
    frame = runs_frame([*RECORDS, record("a|<b>", "list", None, reason="one\ntwo", bound=None)])
    page = markdown(list(sections_of(frame)), "Benchmark", settings_of(frame))

    assert page.startswith("# Benchmark\n\n9 runs on 3 instances; limit 10 s; workers 1;")
    assert "| best greedy |" in page
    assert "## Balanced rows (2)" in page
    assert "| a\\|&lt;b> | list | unknown | one two |" in page
    assert "nan" not in page


def test_versions_that_are_mixed_are_told() -> None:
    other = replace(SETTING, version="2")
    said = settings_of(runs_frame([record(), record(solver="auto", setting=other)]))
    assert "different versions" in said[1]


def test_a_peer_stands_beside_our_figure() -> None:
    frame = runs_frame([record(objective=120, peer="Other 1.0", peer_objective=150)])
    (peers,) = (each for each in sections_of(frame) if each.title == "Beside other tools")
    assert peers.rows[0][-3:] == ("Other 1.0", "150", "0.800")


def test_two_folders_are_compared_run_by_run() -> None:
    before = runs_frame([record("x", "list", 120), record("y", "list", 90), record("z", "list")])
    other = replace(SETTING, row_sha256="zz")
    now = [record("x", "list", 60), record("y", "list", 120, setting=other), record("w", "list")]
    solvers, runs = against(runs_frame(now), before)

    assert solvers.rows[0][:6] == ("list", "2", "1", "0", "1", f"{(2 * 0.75) ** 0.5:.3f}")
    assert [each[0] for each in runs.rows] == ["y", "x"]
    assert [each[-1] for each in runs.rows] == ["other tiles", "same"]


def test_folders_without_a_run_in_common_cannot_be_compared() -> None:
    with pytest.raises(SpmilpError, match="no instance"):
        list(against(runs_frame([record("x")]), runs_frame([record("y")])))


def test_other_quantities_are_not_compared() -> None:
    energy = runs_frame([record("x", statistics=replace(STATISTICS, quantity="energy"))])
    with pytest.raises(SpmilpError, match="in common"):
        list(against(runs_frame([record("x")]), energy))
