"""What tests of solvers share."""

import gc
import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise a ``KeyboardInterrupt``, also where pytest's workers do not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # hypothesis is called at every collection, and an interrupt that comes there is lost.
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)
