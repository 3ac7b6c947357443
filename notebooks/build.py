"""Build the notebooks (``*.ipynb``, without outputs) from their sources (``*.py``, py:percent)."""

from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parent


def sources() -> list[Path]:
    """Return the notebooks' sources, in order of name."""
    return sorted(FOLDER.glob("[0-9]*.py"))


def built(source: Path) -> str:
    """Return the text of the notebook; the same source gives the same text."""
    notebook = jupytext.read(source)
    for position, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{position}"
    return nbformat.writes(notebook, indent=1) + "\n"


def main() -> None:
    """Build every notebook."""
    for source in sources():
        source.with_suffix(".ipynb").write_text(built(source), encoding="utf-8")


if __name__ == "__main__":
    main()
