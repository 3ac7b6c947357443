"""The process in which PuLP and its solvers run: ``python -m spmilp.solvers.milp.worker FD``.

It answers calls on that end of a pipe until the other end closes, also in the middle of a call: no
solver outlives the program that asked. Its output goes to stderr.
"""

import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from types import FrameType

from spmilp.errors import SpmilpError
from spmilp.solvers.milp import backend
from spmilp.solvers.milp.messages import Answer, Call, Outcome


def main() -> None:
    """Answer calls; an interrupt asks the solver at work to end with its best solution."""
    pipe = Connection(int(sys.argv[1]))
    os.dup2(2, 1)
    calls: SimpleQueue[Call] = SimpleQueue()
    Thread(target=_read, args=(pipe, calls), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        call = calls.get()
        signal.signal(signal.SIGINT, _interrupt)
        try:
            answer = _answer(call)
        except KeyboardInterrupt:
            answer = Answer(value=Outcome(interrupted=True))
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        pipe.send(answer)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _read(pipe: Connection, calls: "SimpleQueue[Call]") -> None:
    try:
        while True:
            calls.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(0)


def _answer(call: Call) -> Answer:
    try:
        return Answer(value=getattr(backend, call.function)(*call.arguments))
    except SpmilpError as error:
        return Answer(error=str(error))
    except Exception:
        return Answer(traceback=traceback.format_exc())


if __name__ == "__main__":
    main()
