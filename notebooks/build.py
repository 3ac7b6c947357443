"""Build the notebooks (``*.ipynb``) from their sources (``*.py``, py:percent), and run them.

    python notebooks/build.py [NAME ...]

The second notebook takes hours; ``SPMILP_INSTANCES``, ``SPMILP_NETWORKS`` and ``SPMILP_SECONDS``
make it short.
"""

import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent


def sources() -> list[Path]:
    """Return the notebooks' sources, in order of name."""
    return sorted(FOLDER.glob("[0-9]*.py"))


def built(source: Path) -> nbformat.NotebookNode:
    """Return a notebook without outputs; the same source gives the same cells."""
    notebook = jupytext.read(source)
    for position, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{position}"
    return notebook


def run(notebook: nbformat.NotebookNode) -> None:
    """Run a notebook from its first cell to its last, and keep what they print."""
    NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": FOLDER}},
    ).execute()


def main() -> None:
    """Build and run every notebook, or those that are named."""
    for source in sources():
        if len(sys.argv) == 1 or source.stem in sys.argv[1:]:
            notebook = built(source)
            run(notebook)
            nbformat.write(notebook, source.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()
