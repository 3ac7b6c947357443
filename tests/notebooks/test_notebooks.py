"""The notebooks are current and run from the first cell to the last."""

import importlib.util
from pathlib import Path
from types import ModuleType

import jupytext
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"


def cells(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILDER = builder()
SOURCES = BUILDER.sources()


def test_there_are_notebooks() -> None:
    assert SOURCES


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_notebook_is_built_from_its_source(source: Path) -> None:
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
    notebook = BUILDER.built(source)
    BUILDER.run(notebook)

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    images = [output for output in outputs if "image/png" in output.get("data", {})]
    assert images, "a notebook shows at least one figure"
