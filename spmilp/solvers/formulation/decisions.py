"""What a solution decides, as plain integers, whatever the model."""

from dataclasses import dataclass

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.units import Cycles, EngineIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task in a pool of cores during ``[start, end)``."""

    pool: int
    start: Cycles
    end: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How a candidate residency that exists comes about.

    Parameters
    ----------
    start
        When it begins, with what fills it.
    source, engine
        Of the transfer that fills it; ``None`` where it is there at cycle 0 or a task writes it.
    root
        The residency to which that transfer belongs: itself, or another destination of the
        same multicast; ``None`` without a transfer.
    """

    start: Cycles
    source: CandidateResidency | None = None
    engine: EngineIdx | None = None
    root: CandidateResidency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """A solution.

    Parameters
    ----------
    runs
        Of each task, by index.
    fills
        The candidate residencies that exist.
    served
        The residency that serves each ``(task, position)`` of a read.
    outputs
        The residencies in which buffers lie that have to be somewhere at the end.
    lasting
        Others that are kept until the end of the plan if anything uses them.
    in_place
        ``(task, operand, result)`` that share bytes.
    late
        The residencies that are used *late*: as a later one of the slice, which the model does not
        have. With any the solution is no plan.
    """

    runs: tuple[TaskRun, ...]
    fills: dict[CandidateResidency, Fill]
    served: dict[tuple[TaskIdx, int], CandidateResidency]
    outputs: tuple[CandidateResidency, ...]
    lasting: frozenset[CandidateResidency] = frozenset()
    in_place: tuple[tuple[TaskIdx, CandidateResidency, CandidateResidency], ...] = ()
    late: frozenset[CandidateResidency] = frozenset()
