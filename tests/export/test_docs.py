"""The documentation says of every field and controller what the code says."""

from pathlib import Path

import pytest

from spmilp.export.tables.layouts import LAYOUTS
from spmilp.export.tables.table import Layout
from spmilp.machine.controllers import CONTROLLERS

PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.table)
def test_every_field_of_a_table_is_documented(layout: Layout) -> None:
    section = PAGE.split(f"### {layout.table}\n")[1].split("\n### ")[0]
    assert f"`struct spmilp_{layout.struct}`, {layout.stride} B, type {layout.code} " in section
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    fields = [f"| `{c.name}` | {c.width} | {c.says} |" for c in layout.columns]
    assert rows[: len(fields)] == fields


def test_every_controller_is_documented_with_its_source() -> None:
    for name, controller in CONTROLLERS.items():
        assert f"| `{name}` | runs of {controller.run:,} B" in PAGE
        assert f"| {controller.source} |" in PAGE
