"""Messages between the process of spmilp and that of PuLP: pickled values with their length."""

import pickle
import struct
from dataclasses import dataclass
from typing import IO

LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Call:
    """A function of :mod:`spmilp.solvers.milp.backend` by name, and what it is given."""

    function: str
    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the function returned, or the message of the :class:`SpmilpError` that it raised, or the
    traceback of anything else."""

    value: object = None
    error: str = ""
    traceback: str = ""


def send(stream: IO[bytes], message: Call | Answer) -> None:
    """Write one message."""
    data = pickle.dumps(message)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def received(stream: IO[bytes]) -> Call | Answer | None:
    """Read one message; ``None`` at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        return None
    message: Call | Answer = pickle.loads(data)
    return message
