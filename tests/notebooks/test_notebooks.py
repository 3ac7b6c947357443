"""The notebooks are current and run from the first cell to the last."""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.scripts import script

FOLDER = Path(__file__).parents[2] / "notebooks"


def cells(notebook: Any) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


@cache
def builder() -> ModuleType:
    """Return the script; importing it, and what it needs, takes longer than collecting tests."""
    return script(FOLDER / "build.py")


SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


def test_there_are_notebooks() -> None:
    assert builder().sources() == SOURCES != []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_notebook_is_built_from_its_source(source: Path) -> None:
    import jupytext
    import nbformat

    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert cells(notebook) == cells(jupytext.read(source)), "run python notebooks/build.py"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs, "run python notebooks/build.py"
    assert not [output for output in outputs if output["output_type"] == "error"]


@pytest.mark.full
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_notebook_runs(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPMILP_INSTANCES", "residual-6t")
    monkeypatch.setenv("SPMILP_NETWORKS", "1")
    monkeypatch.setenv("SPMILP_SECONDS", "1")
    monkeypatch.setenv("SPMILP_WORKERS", "1")
    notebook = builder().built(source)
    builder().run(notebook)

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    images = [output for output in outputs if "image/png" in output.get("data", {})]
    assert images, "a notebook shows at least one figure"
