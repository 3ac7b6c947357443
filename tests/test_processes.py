"""Calls beside: an interrupt waits for no thread, and what ends a child is an error in words."""

import os
import signal
import sys
import time
from threading import Event, Thread, main_thread

import pytest

from spmilp.errors import FileError
from spmilp.processes import ChildError, Children, interruptibly

pytestmark = pytest.mark.full


def fail_with(kind: str) -> int:
    sys.stderr.write("oh no\n")
    sys.stderr.flush()
    if kind == "file":
        raise FileError("no file x")
    if kind == "memory":
        raise MemoryError
    if kind == "defect":
        raise KeyError("x")
    if kind == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, kind))
    return 0


def pid() -> int:
    print("what is printed does not disturb the answer")
    return os.getpid()


def test_a_quick_child_gets_the_next_call_and_the_last_one_ends_with_the_block() -> None:
    with Children() as children:
        first = children.call(pid)
        assert children.call(pid) == first
        os.kill(first, signal.SIGKILL)
        time.sleep(0.1)
        other = children.call(pid)
    assert other != first
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("file", "failed", "no file x"),
        ("memory", "out of memory", "an allocation failed"),
        ("defect", "crashed", "KeyError: 'x'"),
        ("exit", "crashed", "oh no"),
        ("SIGSEGV", "crashed", "ended by SIGSEGV: oh no"),
        ("SIGKILL", "killed", "as happens when memory runs out"),
    ],
)
def test_each_way_to_end_has_a_status(kind: str, status: str, said: str) -> None:
    with Children() as children, pytest.raises(ChildError, match=said) as raised:
        children.call(fail_with, kind)
    assert raised.value.status == status
    assert ("fail_with" in raised.value.traceback) == (kind == "defect")


def test_a_call_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with Children() as children, pytest.raises(ChildError, match=r"within 0\.5 s") as raised:
        children.call(time.sleep, 60, limit=0.5)
    assert raised.value.status == "overrun"
    assert time.monotonic() - began < 30


def test_children_at_work_end_with_the_block() -> None:
    raised: list[ChildError] = []

    def call() -> None:
        try:
            children.call(time.sleep, 60)
        except ChildError as error:
            raised.append(error)

    with Children() as children:
        thread = Thread(target=call)
        thread.start()
        time.sleep(1)
    thread.join(30)
    assert [error.status for error in raised] == ["killed"]


def test_an_interrupt_comes_at_once() -> None:
    released = Event()

    def busy() -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
        released.wait(10.0)

    # What was started in the background of a shell does not heed the signal by itself.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptibly(busy)
    finally:
        released.set()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 5.0
