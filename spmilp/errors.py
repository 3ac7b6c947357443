"""Errors that a user can act on; each kind carries the exit code that the command line returns."""

from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command returns to the shell."""

    OK = 0
    USAGE = 2
    INVALID_INPUT = 3
    INFEASIBLE = 4
    LIMIT_WITHOUT_PLAN = 5
    GAP_NOT_REACHED = 6
    PLAN_INVALID = 7
    EXPORT_IMPOSSIBLE = 8
    INTERNAL = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


class SpmilpError(Exception):
    """Something the user gave cannot be used; the message says what, where and what to do."""

    exit_code = ExitCode.INVALID_INPUT


class ArgumentError(SpmilpError, ValueError):
    """An argument has a value that it cannot have.

    Parameters
    ----------
    message
        Begins with the argument's name where it is an option of the command line too.
    is_option
        Whether it does.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, *, is_option: bool = False) -> None:
        super().__init__(message)
        self.is_option = is_option


class NoPlanError(SpmilpError):
    """There is no plan that the checker accepts, and so nothing to show or to make from it."""

    exit_code = ExitCode.LIMIT_WITHOUT_PLAN


class FileError(SpmilpError):
    """A file is missing, unreadable, or not of the format that its reader expects."""


class UnsupportedOperatorError(SpmilpError):
    """The model has nodes that cannot be lowered; ``nodes`` lists each with its reason.

    Parameters
    ----------
    nodes
        One ``(node name, operator, reason)`` per node, in the model's order.
    """

    def __init__(self, nodes: tuple[tuple[str, str, str], ...]) -> None:
        self.nodes = nodes
        lines = [f"  {name} ({operator}): {reason}" for name, operator, reason in nodes]
        count = f"{len(nodes)} node" + ("s" if len(nodes) > 1 else "")
        super().__init__("\n".join([f"{count} cannot be lowered:", *lines]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Something that needs more bytes than the largest memory that could hold it.

    Parameters
    ----------
    what
        The task, group or tensor.
    memory
        The name of that memory.
    needed, usable
        Bytes that have to be in it at one time, at the least, and that plans may use of it.
    parts
        ``(name, bytes)`` of what has to be in it.
    task
        The name of the task that needs it, if one does.
    """

    what: str
    memory: str
    needed: int
    usable: int
    parts: tuple[tuple[str, int], ...]
    task: str = ""


class DoesNotFitError(SpmilpError):
    """A working set is larger than every scratchpad that could hold it.

    Parameters
    ----------
    shortage
        The same as data, where it is known.
    is_proven
        Whether no plan exists; otherwise none was found, which has another exit code.
    """

    exit_code = ExitCode.INFEASIBLE

    def __init__(
        self, message: str, shortage: Shortage | None = None, *, is_proven: bool = True
    ) -> None:
        super().__init__(message)
        self.shortage = shortage
        self.is_proven = is_proven
        if not is_proven:
            self.exit_code = ExitCode.LIMIT_WITHOUT_PLAN


class PinError(SpmilpError):
    """A pin names what does not exist, contradicts something, or is none that a solver takes."""


class PinnedTilesError(PinError, DoesNotFitError):
    """Pinned tiles fit no scratchpad."""


class MissingExtraError(SpmilpError):
    """An optional dependency is not installed; the message names the extra to install."""

    exit_code = ExitCode.USAGE
