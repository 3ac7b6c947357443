"""A limit on the memory of the process: the search ends at most of it, everything at all of it."""

import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, main_thread
from types import FrameType
from typing import Protocol

from spmilp.amounts import size
from spmilp.units import Bytes

SHARE_OF_SEARCH = 0.7
"""Of the limit: the rest is for checking the plan and writing it."""

BETWEEN_LOOKS, AGAIN = 0.1, 1.0
"""Seconds until memory is looked at again, and where it exceeds its limit: an interrupt may be lost
there, in what the garbage collector calls, for example."""

ATTEMPTS = 3
"""To end what exceeds the limit."""

STATM = Path("/proc/self/statm")


class Watched(Protocol):
    """A search whose memory is watched.

    Parameters
    ----------
    has_plan
        An interrupt of the search would leave a plan.
    memory
        The bytes in use and their limit, once that is what ends the search.
    """

    has_plan: bool
    memory: tuple[Bytes, Bytes] | None


def why_it_ends(memory: tuple[Bytes, Bytes]) -> str:
    """Say that the memory in use and its limit end a search."""
    in_use, limit = memory
    return f"the memory limit of {size(limit)} ends the search: {size(in_use)} are in use"


def memory_in_use() -> Bytes:
    """Return the bytes that this process uses; where that is not told, the most it has used."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


@contextmanager
def memory_watched(
    limit: Bytes | None, watched: Watched, in_use: Callable[[], Bytes] = memory_in_use
) -> Iterator[None]:
    """Interrupt the search when the process uses most of a limit, and all else when it exceeds it.

    The search is that of the main thread. As long as there is no plan, most of the limit is not
    enough to end it.

    Parameters
    ----------
    limit
        ``None`` for none.
    in_use
        Tells the bytes in use.
    """
    if limit is None:
        yield
        return
    ended = Event()
    watch = Thread(target=_watch, args=(limit, watched, in_use, ended), daemon=True)
    with _interrupts_heeded(watched):
        try:
            watch.start()
            yield
        finally:
            ended.set()
            if watch.ident is not None:
                watch.join()


@contextmanager
def _interrupts_heeded(watched: Watched) -> Iterator[None]:
    """Let the watch interrupt a process that ignores Ctrl-C, as those do that a script begins."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if watched.memory is not None:
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _watch(limit: Bytes, watched: Watched, in_use: Callable[[], Bytes], ended: Event) -> None:
    main, left = main_thread().ident or 0, ATTEMPTS
    while left:
        used = in_use()
        ends_search = watched.has_plan and watched.memory is None
        if used > limit or (ends_search and used > SHARE_OF_SEARCH * limit):
            watched.memory = used, limit
            signal.pthread_kill(main, signal.SIGINT)
        left -= used > limit
        if ended.wait(AGAIN if used > limit else BETWEEN_LOOKS):
            return
