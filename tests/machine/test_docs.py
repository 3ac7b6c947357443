"""The examples in docs/machines.md work."""

import re
from pathlib import Path

import pytest

from spmilp.machine.read import read_machine

DOCUMENT = Path(__file__).parents[2] / "docs" / "machines.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), flags=re.DOTALL)


def test_the_example_of_the_documentation_is_a_machine() -> None:
    (example,) = blocks("yaml")
    file = read_machine(example.encode(), "docs/machines.md")
    assert len(file.machine.cores) == 6
    assert "dram.dram.rate_bytes_per_cycle" not in file.machine.unverified
    assert "dram.dram.latency_cycles" in file.machine.unverified


def test_the_python_example_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("python")
    exec(compile(example, str(DOCUMENT), "exec"), {})
    assert capsys.readouterr().out.split() == ["6", "52", "328"]
