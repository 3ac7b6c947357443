"""An interrupt does not wait for what runs without the interpreter lock."""

import signal
from threading import Event, Thread, current_thread, main_thread
from time import monotonic, sleep

import pytest

from spmilp.interruptible import interruptibly, stoppably

pytestmark = pytest.mark.full


def test_the_answer_and_the_error_are_those_of_the_function() -> None:
    assert interruptibly(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        interruptibly(divmod, 7, 0)


def test_an_interrupt_comes_at_once() -> None:
    released = Event()

    def busy() -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
        released.wait(10.0)

    # What was started in the background of a shell does not heed the signal by itself.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    began = monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptibly(busy)
    finally:
        released.set()
        signal.signal(signal.SIGINT, before)
    assert monotonic() - began < 5.0


def test_other_threads_call_the_function_themselves() -> None:
    found: list[Thread] = []
    other = Thread(target=lambda: found.append(interruptibly(current_thread)))
    other.start()
    other.join()
    assert found == [other]


def test_what_can_be_stopped_is_asked_to_stop_and_its_answer_is_returned() -> None:
    stopped = Event()

    def busy() -> int:
        sleep(0.1)  # Until the caller waits.
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
        stopped.wait(10.0)
        return 7

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert stoppably(busy, stopped.set) == (7, True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.is_set()
    assert stoppably(lambda: 8, stopped.clear) == (8, False)
    with pytest.raises(ZeroDivisionError):
        stoppably(lambda: 1 // 0, stopped.clear)
