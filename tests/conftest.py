"""What all tests have in common."""

import os
import signal

import pytest

from spmilp.options import WORKERS
from tests.acceptance.conftest import run

__all__ = ["run"]


def pytest_configure(config: pytest.Config) -> None:
    """Heed Ctrl-C, and solve in one process."""
    os.environ.setdefault(WORKERS, "1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # the run is in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave families of random cases to the second set, but for operators against onnxruntime."""
    for item in items:
        is_random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if is_random and "operators" not in item.path.parts:
            item.add_marker(pytest.mark.full)
