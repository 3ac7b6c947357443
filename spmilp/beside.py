"""Files that a copy of this process writes while this one is busy with something else."""

import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

MOST_SECONDS = 120.0
"""A copy has no copies of other threads; should one of them have held what it waits for, it never
ends."""
HEARTBEAT = 0.01


@contextmanager
def written_beside(write: Callable[[Path], object], target: Path) -> Iterator["Writing | None"]:
    """Let a copy of this process write files to a hidden folder, which is removed at the end.

    Parameters
    ----------
    write
        Writes the files to the folder that it is given. It begins with all that this process knows;
        what it changes is not seen here.
    target
        The folder beside which the hidden one is made, so that files can be renamed into it.

    Yields
    ------
    Writing | None
        What is being written; ``None`` where processes have no copies or no folder can be made:
        then the files are to be written in another way.
    """
    folder = _hidden_folder(target)
    if folder is None:
        yield None
        return
    writing = Writing(folder, _start_copy(lambda: write(folder)))
    try:
        yield writing
    finally:
        writing.end()
        shutil.rmtree(folder, ignore_errors=True)


class Writing:
    """What a copy of this process is writing."""

    def __init__(self, folder: Path, process: int) -> None:
        self._folder = folder
        self._process: int | None = process
        self._deadline = monotonic() + MOST_SECONDS

    def finished(self) -> Path | None:
        """Wait for the copy; return the folder, or ``None`` if it could not write all."""
        while self._process is not None and monotonic() < self._deadline:
            ended, status = os.waitpid(self._process, os.WNOHANG)
            if ended:
                self._process = None
                return self._folder if status == 0 else None
            sleep(HEARTBEAT)
        return None

    def end(self) -> None:
        """Let the copy end, if it is still there."""
        if self._process is not None:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
            self._process = None


def _hidden_folder(target: Path) -> Path | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        target.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=target, prefix=".writing."))
    except OSError:
        return None


def _start_copy(work: Callable[[], object]) -> int:
    """Start a copy of this process that does some work and ends, and return its number."""
    with warnings.catch_warnings():
        # The copy neither needs other threads nor starts any.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        work()
        status = 0
    finally:
        # Nothing of the original's is done twice: no output is flushed, nothing cleaned up.
        os._exit(status)
