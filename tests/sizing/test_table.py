"""Rows that no other dominates, and the picture of them."""

from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from spmilp.sizing.figure import pareto_figure
from spmilp.sizing.table import mark_undominated, write_tables

FRAME = pd.DataFrame(
    {
        "model": ["a", "a", "a", "a", "a", "b"],
        "dim": "",
        "spm": pd.array([16, 32, 32, 64, 64, 99], dtype="Int64"),
        "makespan": pd.array([100, 80, 90, 80, None, 500], dtype="Int64"),
        "dram_traffic": pd.array([7, 9, 5, 8, None, 9], dtype="Int64"),
        "energy": pd.array([0, 0, 0, 0, None, 0], dtype="Int64"),
        "status": "feasible",
    }
)


def test_a_row_is_marked_where_no_other_of_its_model_is_as_good_and_better() -> None:
    two = mark_undominated(FRAME, ["makespan", "spm"])["pareto"]
    assert list(two) == [True, True, False, False, False, True]
    three = mark_undominated(FRAME, ["makespan", "spm", "traffic"])["pareto"]
    assert list(three) == [True, True, True, True, False, True]


@pytest.mark.parametrize(
    ("column", "said"),
    [("makspan", "there are spm, makespan"), ("status", "there are"), ("energy", "0 everywhere")],
)
def test_a_column_that_cannot_be_compared_is_named(column: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        mark_undominated(FRAME, ["makespan", column])


def test_the_figure_has_a_picture_for_each_further_column() -> None:
    for columns in (["makespan", "spm"], ["makespan", "spm", "traffic"]):
        figure = pareto_figure(mark_undominated(FRAME, columns), columns)
        assert len(figure.axes) == len(columns) - 1
        labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert labels == ["a", "b"]


def test_parquet_has_the_same_table_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = FRAME.astype({"model": "string", "dim": "string", "status": "string"})
    files = write_tables(frame, tmp_path)
    assert [file.name for file in files] == ["sweep.csv", "sweep.parquet"]
    packed = pd.read_parquet(tmp_path / "sweep.parquet")
    assert_frame_equal(packed, frame, check_dtype=False)
    # Whole numbers stay whole where one of them is missing.
    assert packed["makespan"].dtype == "Int64"
    shown = pd.read_csv(tmp_path / "sweep.csv")
    assert list(shown.columns) == list(packed.columns)
    assert shown["makespan"].dropna().tolist() == packed["makespan"].dropna().tolist()


def test_without_pyarrow_there_is_no_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmilp.sizing.table.find_spec", lambda name: None)
    assert [file.name for file in write_tables(FRAME, tmp_path)] == ["sweep.csv"]
