"""Compiled functions that an interrupt does not have to wait for."""

from collections.abc import Callable
from threading import Event, Thread, current_thread, main_thread
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def interruptibly(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that runs long without the interpreter lock, and return what it returns.

    Python handles signals in the main thread and between its own steps; a compiled function is one
    step, however long it takes. Called from the main thread, it therefore runs in another one. An
    interrupt then leaves it to itself: it runs to its end, and nobody looks at what it returns, so
    nothing that it writes to may be in use for anything else.
    """
    if current_thread() is not main_thread():
        return function(*args, **kwargs)
    call = _Call[R](lambda: function(*args, **kwargs))
    Thread(target=call.run, daemon=True).start()
    call.ended.wait()
    return call.answer()


class _Call(Generic[R]):
    def __init__(self, function: Callable[[], R]) -> None:
        self._function = function
        self._returned: list[R] = []
        self._raised: BaseException | None = None
        self.ended = Event()

    def run(self) -> None:
        try:
            self._returned.append(self._function())
        except BaseException as error:
            self._raised = error
        finally:
            self.ended.set()

    def answer(self) -> R:
        if self._raised is not None:
            raise self._raised
        return self._returned[0]
