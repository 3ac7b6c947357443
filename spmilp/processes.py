"""Functions beside this one: in threads that an interrupt does not wait for, and in processes.

Python handles signals in the main thread and between its own steps; a compiled function is one
step, however long it takes.

Child processes have a time limit, and whatever ends one is an error in words. The parent pickles
calls into the child's standard input, and reads answers from its standard output; ``python -m
spmilp.processes`` is the child. It ends when its input does, so that it never outlives its parent,
and what libraries print goes to its standard error.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from traceback import format_exc
from typing import Any, ParamSpec, Self, TypeVar

from spmilp.errors import SpmilpError

P = ParamSpec("P")
R = TypeVar("R")

HEARTBEAT = 0.05
"""Seconds after which a function that was asked to stop is asked again."""


def processors() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def begun(function: Callable[[], R]) -> Future[R]:
    """Begin a function in a thread of its own, which ends with this process at the latest."""
    call: Future[R] = Future()

    def run() -> None:
        try:
            call.set_result(function())
        except BaseException as error:
            call.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return call


def interruptibly(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that runs long without the interpreter lock, and return what it returns.

    Called from the main thread, it runs in another one. An interrupt then leaves it to itself: it
    runs to its end, and nobody looks at what it returns, so nothing that it writes to may be in use
    for anything else.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    return begun(lambda: function(*args, **kwargs)).result()


def stoppably(
    function: Callable[[], R],
    stop: Callable[[], None],
    wait: Callable[[], object] | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> tuple[R, bool]:
    """Call a function in another thread that an interrupt asks to stop.

    After an interrupt ``stop`` is called now and then, for what has not begun yet cannot stop.
    ``wait`` waits for a while, or until ``on_end`` is called: when the function has ended.
    Returns what the function returns, and whether an interrupt came.
    """
    call, interrupted = begun(function), False
    pause = wait or partial(wait_for, [call], HEARTBEAT)
    call.add_done_callback(lambda _: on_end())
    while not call.done():
        try:
            if interrupted:
                stop()
            pause()
        except KeyboardInterrupt:
            interrupted = True
    return call.result(), interrupted


ENDED = "killed", "ended by SIGKILL, as happens when memory runs out"


class ChildError(SpmilpError):
    """A child process has no answer: ``status`` says in a word why, the message in a sentence.

    ``failed`` (the function raised a :class:`SpmilpError`), ``crashed`` (any other exception, whose
    ``traceback`` is kept, or a signal: a defect), ``overrun``, ``killed``, ``out of memory``.
    """

    def __init__(self, status: str, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.traceback = traceback


class Child:
    """A process that calls functions, one at a time."""

    def __init__(self) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 - closed with this object
        # In a session of its own a Ctrl-C at the terminal reaches only the parent.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spmilp.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )

    def call(
        self, function: Callable[..., Any], *arguments: object, limit: float | None = None
    ) -> Any:
        """Call a function of a module over there, and return its value; see :meth:`answer`."""
        self.begin(function, *arguments)
        return self.answer(limit)

    def begin(self, function: Callable[..., Any], *arguments: object) -> None:
        """Begin a call whose value :meth:`answer` returns."""
        into, out_of = self.process.stdin, self.process.stdout
        if into is None or out_of is None:
            raise TypeError("a child has pipes")
        question = pickle.dumps(pickle.dumps((function, arguments)))

        def asked() -> tuple[str, Any, str]:
            with suppress(BrokenPipeError):  # its silence says that it has ended
                into.write(question)
                into.flush()
            answer: tuple[str, Any, str] = pickle.load(out_of)
            return answer

        # A thread writes and reads: no interrupt comes in the middle of an answer, and nobody waits
        # for a child that does not even read.
        self._answer = begun(asked)

    def interrupt(self) -> None:
        """Raise a ``KeyboardInterrupt`` in the function at work."""
        self.process.send_signal(signal.SIGINT)

    def answer(self, limit: float | None = None) -> Any:
        """Wait for the value of the call that has begun; a :class:`ChildError` if it has none.

        After ``limit`` seconds the child is ended.
        """
        if not wait_for([self._answer], limit).done:
            self.end()
            raise ChildError("overrun", f"no answer within {limit:g} s")
        try:
            status, value, traceback = self._answer.result()
        except (EOFError, pickle.UnpicklingError, OSError, ValueError):
            raise ChildError(*self._how_it_ended()) from None
        if status:
            raise ChildError(status, value, traceback)
        return value

    def kill(self) -> None:
        """End the process and all that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it, and wait until it has ended."""
        self.kill()
        with suppress(BrokenPipeError), self.process:
            pass

    def _how_it_ended(self) -> tuple[str, str]:
        code = self.process.wait()
        self._errors.seek(0)
        said = "".join(self._errors.read().decode(errors="replace").strip().splitlines()[-1:])[:300]
        if code == -9:
            return ENDED
        if code < 0:
            return "crashed", f"ended by {signal.Signals(-code).name}: {said}"
        return "crashed", said or f"ended with exit code {code}"


class Children:
    """A child for each thread that calls functions; they end with the block."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._started: list[Child] = []
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End all children, also those at work, and let no other one start."""
        self._closed = True
        for child in self._started:
            child.kill()
            child.process.wait()

    def call(
        self, function: Callable[..., Any], *arguments: object, limit: float | None = None
    ) -> Any:
        """Call a function in this thread's child; see :meth:`Child.answer`."""
        child: Child | None = getattr(self._of_thread, "child", None)
        if child is None or child.process.poll() is not None:
            child = self._of_thread.child = Child()
            self._started.append(child)
        if self._closed:
            child.end()
            raise ChildError(*ENDED)
        try:
            return child.call(function, *arguments, limit=limit)
        except KeyboardInterrupt:
            child.end()
            raise


def main() -> None:
    """Answer calls until the input ends; an interrupt is heard while a function is at work."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_calls, args=(calls,), daemon=True).start()
    with suppress(OSError):  # where memory runs out, Linux ends this process before others
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    while True:
        call = calls.get()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        answer = _answer(call)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        answers.write(answer)
        answers.flush()


def _answer(call: bytes) -> bytes:
    """Return the status ("" for a value), the value or a message, and the traceback of a call."""
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps(("", function(*arguments), ""))
    except SpmilpError as error:
        return pickle.dumps(("failed", str(error), ""))
    except MemoryError:
        return pickle.dumps(("out of memory", "an allocation failed", ""))
    except BaseException as error:
        return pickle.dumps(("crashed", f"{type(error).__name__}: {error}"[:300], format_exc()))


def _read_calls(calls: "SimpleQueue[bytes]") -> None:
    """Queue what the parent asks, and end this process, whatever it does, with the parent."""
    # Not through sys.stdin, whose lock would still be held when the interpreter ends.
    with os.fdopen(os.dup(0), "rb") as stream, suppress(EOFError, pickle.UnpicklingError):
        while True:
            calls.put(pickle.load(stream))
    os._exit(1)


if __name__ == "__main__":
    main()
