"""What all tests have in common."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checker.second_opinion import second_opinion

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


@pytest.fixture(autouse=True)
def _second_opinion() -> Iterator[None]:
    """Small plans that a test lets the checker judge are judged by the second checker too."""
    with second_opinion():
        yield
