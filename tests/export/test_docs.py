"""The documentation says of every controller what the code says."""

from pathlib import Path

from spmilp.machine.controllers import CONTROLLERS

PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()


def test_every_controller_is_documented_with_its_source() -> None:
    for name, controller in CONTROLLERS.items():
        assert f"| `{name}` | runs of {controller.run:,} B" in PAGE
        assert f"| {controller.source} |" in PAGE
