"""The command as a whole: help, version, exit codes, and what it loads."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "onnx", "onnx_ir", "ortools", "pandas", "matplotlib", "pulp")


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
def test_the_list_scheduler_loads_no_library_of_others() -> None:
    script = (
        "import sys, spmilp\n"
        "spmilp.solve('models/resnet8_int8.onnx', 'edge16', solver='list', time_limit=20)\n"
        "print({'highspy', 'ortools.sat', 'pandas', 'pulp', 'scipy'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
