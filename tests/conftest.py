"""What all tests have in common."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROBLEMS = Path(__file__).parents[1] / "instances" / "problems"
INSTANCE = PROBLEMS / "residual-8t-2c-crossbar-verytight-balanced.json"
COMPILED = """
import sys
import spmilp

for solver, objective in (("lns", "makespan"), ("residency", "dram_traffic")):
    spmilp.solve(sys.argv[1], solver=solver, objective=objective, time_limit=0.5)
"""


def pytest_configure(config: pytest.Config) -> None:
    """Heed Ctrl-C, and compile once what each process of a run of all tests would compile."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # the run is in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    is_parent = not hasattr(config, "workerinput") and config.getoption("numprocesses", None)
    if is_parent and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        subprocess.run([sys.executable, "-c", COMPILED, str(INSTANCE)], check=False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave families of random cases to the second set, but for operators against onnxruntime."""
    for item in items:
        is_random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if is_random and "operators" not in item.path.parts:
            item.add_marker(pytest.mark.full)
