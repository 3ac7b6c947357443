"""Every command of docs/player.md, run one after the other as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.player import programs

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "player.md").read_text()


def blocks(section: str) -> list[tuple[str, str]]:
    """Return language and text of what can be run in a section."""
    text = PAGE.split(f"\n## {section}")[1].split("\n## ")[0]
    return re.findall(r"```(sh|python)\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the models, as a checkout has them."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "models").symlink_to(ROOT / "models")
    return folder


def run_section(section: str, folder: Path) -> None:
    """Run the blocks of a section; each has to end well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, text in blocks(section):
        command = ["bash", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


@pytest.mark.skipif(
    bool(programs.missing(("gcc", "make", "bash"))), reason="gcc, make or bash is not installed"
)
def test_the_worked_example_runs_from_onnx_to_a_program_with_the_expected_bits(
    checkout: Path,
) -> None:
    run_section("1. From ONNX to a running program", checkout)
    if programs.missing(programs.ARM_TOOLS):
        pytest.skip(f"section 2: not installed: {', '.join(programs.missing(programs.ARM_TOOLS))}")
    run_section("2. Without an operating system", checkout)
