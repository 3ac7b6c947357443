"""The memory of this process: the most it had, and what happens when there is none left."""

import sys
from contextlib import suppress
from pathlib import Path


def peak_bytes() -> int | None:
    """Return the most bytes of memory that this process has had; ``None`` where nobody counts.

    Linux counts in ``VmHWM`` since the program was started; what ``getrusage`` tells there may be
    of the parent.
    """
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def is_killed_first() -> None:
    """Let Linux end this process before others when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
