"""What an interrupt does not wait for, compiled code in threads of its own, and what it waits for.

Python handles signals in the main thread and between its own steps; a compiled function is one
step, however long it takes.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

HEARTBEAT = 0.05
"""Seconds after which a function that was asked to stop is asked again."""


class Background(Generic[R]):
    """A function in a thread of its own, which ends with this process at the latest.

    Parameters
    ----------
    on_end
        Called in that thread when the function has returned or raised.
    """

    def __init__(
        self, function: Callable[[], R], on_end: Callable[[], None] = lambda: None
    ) -> None:
        self._function = function
        self._on_end = on_end
        self._returned: list[R] = []
        self._raised: BaseException | None = None
        self.ended = Event()
        Thread(target=self._run, daemon=True).start()

    def answer(self) -> R:
        """Return or raise what the function has returned or raised, once it has ended."""
        if self._raised is not None:
            raise self._raised
        return self._returned[0]

    def _run(self) -> None:
        try:
            self._returned.append(self._function())
        except BaseException as error:
            self._raised = error
        finally:
            self.ended.set()
            self._on_end()


def interruptibly(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that runs long without the interpreter lock, and return what it returns.

    Called from the main thread, it runs in another one. An interrupt then leaves it to itself: it
    runs to its end, and nobody looks at what it returns, so nothing that it writes to may be in use
    for anything else.
    """
    if current_thread() is not main_thread():
        return function(*args, **kwargs)
    call = Background(lambda: function(*args, **kwargs))
    call.ended.wait()
    return call.answer()


def stoppably(
    function: Callable[[], R],
    stop: Callable[[], None],
    wait: Callable[[], object] | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> tuple[R, bool]:
    """Call a function in another thread that an interrupt asks to stop.

    Parameters
    ----------
    stop
        Called now and then after an interrupt, for what has not begun yet cannot stop.
    wait
        Waits for a while, or until ``on_end`` is called.
    on_end
        Called when the function has ended.

    Returns
    -------
    tuple[R, bool]
        What the function returns, and whether an interrupt came.
    """
    call = Background(function, on_end)
    interrupted = False
    while not call.ended.is_set():
        try:
            if interrupted:
                stop()
            if wait is None:
                call.ended.wait(HEARTBEAT)
            else:
                wait()
        except KeyboardInterrupt:
            interrupted = True
    return call.answer(), interrupted


@contextmanager
def signals_wait() -> Iterator[None]:
    """Let signals that would end the process wait for what must not be left half done.

    That is what takes milliseconds, or what leaves a library in pieces. In other threads than the
    main one nothing is interrupted in any case.
    """
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    known = {number: handler for number, handler in before.items() if handler is not None}
    for number in known:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
