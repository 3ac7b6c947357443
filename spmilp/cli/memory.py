"""A limit on the memory of the process: the search ends at most of it, everything at all of it."""

import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, main_thread

from spmilp.cli.interrupts import Interrupts
from spmilp.units import Bytes

SHARE_OF_SEARCH = 0.7
"""Of the limit: the rest is for checking the plan and writing it."""

BETWEEN_LOOKS = 0.1
"""Seconds."""

STATM = Path("/proc/self/statm")


def memory_in_use() -> Bytes:
    """Return the bytes that this process uses; where that is not told, the most it has used."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


@contextmanager
def memory_watched(
    limit: Bytes | None, interrupts: Interrupts, in_use: Callable[[], Bytes] = memory_in_use
) -> Iterator[None]:
    """Interrupt the search when the process uses most of a limit, and all else when it exceeds it.

    As long as there is no plan, most of the limit is not enough to end the search.

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
    watch = Thread(target=_watch, args=(limit, interrupts, in_use, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(limit: Bytes, interrupts: Interrupts, in_use: Callable[[], Bytes], ended: Event) -> None:
    main = main_thread().ident or 0
    while not ended.wait(BETWEEN_LOOKS):
        used = in_use()
        ends_search = interrupts.has_plan and interrupts.memory is None
        if used > limit or (ends_search and used > SHARE_OF_SEARCH * limit):
            interrupts.memory = used, limit
            signal.pthread_kill(main, signal.SIGINT)
        if used > limit:
            return
