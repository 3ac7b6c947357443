"""Figures as files."""

from pathlib import Path

import pytest

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.figures import memory_map, write_figure


@pytest.mark.parametrize(
    ("ending", "begins"), [(".pdf", b"%PDF"), (".svg", b"<?xml"), (".PNG", b"\x89PNG")]
)
def test_the_same_figure_gives_the_same_bytes(
    problem: Problem, plan: Plan, tmp_path: Path, ending: str, begins: bytes
) -> None:
    first, again = (
        write_figure(memory_map(problem, plan), tmp_path / f"{name}{ending}").read_bytes()
        for name in ("one", "two")
    )
    assert first == again
    assert first.startswith(begins)
