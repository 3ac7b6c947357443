"""``python -m spmilp`` and the command ``spmilp``: signals first, then the command line."""

import gc
import os
import sys
from signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal
from time import perf_counter


def main() -> None:
    """Run the command line; a signal counts from here on, while modules are still being loaded."""
    started = perf_counter()
    gc.set_threshold(100_000)  # what is loaded stays; to look it through for cycles takes 0.1 s
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, SIG_DFL)  # Python would print a traceback while the next line is loading
    from spmilp.cli.interrupts import end_at_signals

    end_at_signals()
    from spmilp.cli.main import main as command_line

    try:
        command_line(started)
    except SystemExit as ended:
        # All is written. Python would wait for threads in compiled code, and meanwhile a signal
        # would count as one that nobody handles.
        sys.stderr.flush()
        os._exit(int(ended.code or 0))


if __name__ == "__main__":
    main()
