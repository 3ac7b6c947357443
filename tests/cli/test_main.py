"""What imports and commands load."""

import subprocess
import sys

import pytest

HEAVY = {"numpy", "onnx", "onnx_ir", "ortools", "pandas", "matplotlib", "pulp"}
HELP = """
from spmilp.cli.main import app
try:
    app(['solve', '--help'])
except SystemExit:
    pass
"""
LIST = """
import spmilp
spmilp.solve('models/resnet8_int8.onnx', 'edge16', solver='list', time_limit=20)
"""
SOLVERS = {"highspy", "ortools.sat", "pandas", "pulp", "scipy"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("script", "without", "seconds"),
    [(HELP, HEAVY, 60.0), ("import spmilp", HEAVY | {"pydantic"}, 0.3), (LIST, SOLVERS, 60.0)],
    ids=["help", "import", "list scheduler"],
)
def test_libraries_are_loaded_where_they_are_used(
    script: str, without: set[str], seconds: float
) -> None:
    ends = f"print(time.process_time() - began, *sorted({without} & {{*sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, time; began = time.process_time()\n{script}\n{ends}"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    took, *loaded = done.stdout.splitlines()[-1].split()
    assert loaded == []
    assert float(took) < seconds
