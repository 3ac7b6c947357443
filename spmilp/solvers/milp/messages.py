"""Limits and results of a run, and the messages that carry them to the process of PuLP and back."""

from dataclasses import dataclass, replace
from time import monotonic

LEAST = 0.05
"""Seconds that a solver gets however late it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a run; ``None`` for no limit of seconds, or of nodes of HiGHS's search."""

    seconds: float | None
    threads: int
    seed: int
    gap: float = 0.0
    nodes: int | None = None

    def since(self, began: float) -> "Limits":
        """Return the limits that are left of a run that began at a monotonic time."""
        if self.seconds is None:
            return self
        return replace(self, seconds=max(LEAST, self.seconds - (monotonic() - began)))


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The result of a run.

    Parameters
    ----------
    values
        Of each variable, as the solver gives them; ``None`` without a solution.
    bound
        Proven on the objective; ``None`` when nothing is.
    infeasible
        It is proven that there is no solution.
    complete
        The run has ended by itself.
    interrupted
        The user has asked to stop.
    """

    values: list[float] | None = None
    bound: int | None = None
    infeasible: bool = False
    complete: bool = False
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of :mod:`spmilp.solvers.milp.backend`, by its name."""

    function: str
    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The value that the function returned, or the message of the :class:`SpmilpError` or the
    traceback of the other exception that it raised."""

    value: object = None
    error: str = ""
    traceback: str = ""
