"""The figure of DRAM traffic by tensor, and figures as files."""

from pathlib import Path

import pytest

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import traffic, write_figure


def test_each_tensor_has_a_bar_of_loads_and_stores_and_a_frame(
    problem: Problem, plan: Plan
) -> None:
    (axis,) = traffic(problem, plan).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["y", "x"]
    widths = [[patch.get_width() * 1024 for patch in bars] for bars in axis.containers]
    assert widths == [[0, 32], [64, 0], [64, 32]]
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["loaded", "stored", "compulsory"]


@pytest.mark.parametrize(
    ("ending", "begins"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")]
)
def test_the_same_figure_gives_the_same_bytes(
    problem: Problem, plan: Plan, tmp_path: Path, ending: str, begins: bytes
) -> None:
    first, again = (
        write_figure(traffic(problem, plan), tmp_path / f"{name}{ending}").read_bytes()
        for name in ("one", "two")
    )
    assert first == again
    assert first.startswith(begins)
