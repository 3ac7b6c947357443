"""Ctrl-C and SIGTERM: stop the search, keep the incumbent, say so in the end."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from spmilp.errors import ExitCode

CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}

WHAT_REMAINS = "files hold what they held before, or all that is new"
"""What a command that was cut short leaves behind."""


class Interrupted(KeyboardInterrupt):
    """A signal asks the command to end; ``code`` is the exit code that it then returns."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__()
        self.code = code


@dataclass
class Interrupts:
    """The exit code of the last signal that has arrived; ``None`` before the first.

    When the search is over (``finishing``), a first signal is noted and the rest still done.
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
    except (ImportError, SystemError) as error:
        # What a library makes of an interrupt while it is loaded.
        if noted.code is None:
            raise
        raise Interrupted(noted.code) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_signals() -> None:
    """Let a signal end the process at once, with a message and its exit code.

    This holds where :func:`interrupts_noted` does not: where there is no search to be cut short.
    """
    for number in CODES:
        # What was started in the background of a script does not heed Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def failure(kind: str, message: str, code: ExitCode) -> dict[str, Any]:
    """Return an error as the JSON object that a command prints."""
    error = {"kind": kind, "message": message}
    return {"status": "error", "exit_code": int(code), "error": error}


def _end(number: int, frame: FrameType | None) -> NoReturn:
    code, message = CODES[signal.Signals(number)], f"interrupted; {WHAT_REMAINS}"
    said = [(2, f"error: {message}")]
    if "--json" in sys.argv:
        said.append((1, json.dumps(failure(Interrupted.__name__, message, code), indent=2)))
    # Nothing that may be in the middle of something is used any more: neither streams nor locks.
    for stream, text in said:
        with suppress(OSError):
            os.write(stream, f"{text}\n".encode())
    os._exit(code)
