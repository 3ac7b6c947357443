"""Ctrl-C and SIGTERM: stop the search, keep the incumbent, return the signal's exit code."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from spmilp.errors import ExitCode

CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


class Interrupted(KeyboardInterrupt):
    """A signal asks the command to end; ``code`` is what it then returns."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__()
        self.code = code


@dataclass
class Interrupts:
    """The signals that have arrived, and the effect of a first one.

    Parameters
    ----------
    code
        The exit code of the last signal; ``None`` before the first.
    finishing
        The search is over: a first signal is noted and the rest still done.
    """

    code: ExitCode | None = None
    finishing: bool = False


@contextmanager
def interrupts_noted() -> Iterator[Interrupts]:
    """Note signals that arrive; raise :class:`Interrupted` for each that ends something.

    A solver that has a plan catches the first one and returns the plan; the caller then sees from
    the noted code that the search was cut short, and checks and writes the plan. A second signal
    ends that as well.
    """
    noted = Interrupts()

    def interrupt(number: int, frame: FrameType | None) -> None:
        first, noted.code = noted.code is None, CODES[signal.Signals(number)]
        if not (first and noted.finishing):
            raise Interrupted(noted.code)

    before = {number: signal.signal(number, interrupt) for number in CODES}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
