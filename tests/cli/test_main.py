"""The command as a whole: help, version, exit codes, and what it loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "onnx", "onnx_ir", "ortools", "pandas", "numba", "networkx", "matplotlib", "pulp")


@pytest.mark.full
def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from spmilp.cli.main import app\n"
        "try:\n    app(['solve', '--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.full
def test_the_installed_command_prints_its_version() -> None:
    command = Path(sys.executable).with_name("spmilp")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("spmilp 0.")


@pytest.mark.full
def test_output_that_is_no_terminal_has_no_colours() -> None:
    command = Path(sys.executable).with_name("spmilp")
    environment = {**os.environ, "FORCE_COLOR": "", "NO_COLOR": "1"}
    done = subprocess.run(
        [command, "machines"], capture_output=True, text=True, timeout=60, env=environment
    )
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
