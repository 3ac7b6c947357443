"""Runs of models within a budget; what they find goes into the state of the search."""

from typing import NamedTuple

from spmilp.solvers.cpsat.inquiry import Found, run
from spmilp.solvers.cpsat.load_relaxation.model import LoadRelaxation
from spmilp.solvers.cpsat.model import Model
from spmilp.solvers.cpsat.parameters import Limits
from spmilp.solvers.cpsat.state import SearchState
from spmilp.solvers.cpsat.structure import Structure

ROUNDS = 12
"""Models built in one step to make packings possible."""

LITERALS_PER_SECOND = 10_000
"""What of a model is built in a second; one that takes more than half of the time left is not."""


class Budget(NamedTuple):
    """What a step may spend.

    Parameters
    ----------
    share
        Of the time limit, by which it has ended.
    deterministic
        Deterministic time of each of its runs; ``None`` for no limit of its own.
    """

    share: float
    deterministic: float | None = None


def find_plans(
    state: SearchState, budget: Budget, structure: Structure | None = None, position: int = 0
) -> Found | None:
    """Improve one of the quantities within a structure, by default the whole problem's.

    Where the best solution has no addresses, those that stand in each other's way get theirs into
    the model, and the search begins again.

    Returns
    -------
    Found or None
        The last run; ``None`` if its best solution has no addresses, or time was out before.
    """
    for _ in range(ROUNDS):
        if state.clock.is_over(budget.share):
            return None
        within = structure or state.structure(relaxed=False)
        if not has_time_to_build(state, within, budget):
            return None
        found = _run(state, state.model(within, position), budget, finds=position == 0)
        conflict = state.take(found)
        if conflict is None:
            return found
        if not state.learn(conflict):
            return None
    return None


def has_time_to_build(state: SearchState, structure: Structure, budget: Budget) -> bool:
    """Say whether a model can be built in good time before a budget is spent."""
    left = state.clock.seconds_left(budget.share)
    return left is None or structure.literals <= LITERALS_PER_SECOND * left / 2


def prove(state: SearchState, model: Model | LoadRelaxation, budget: Budget) -> Found:
    """Search a relaxation for anything better than the incumbent, and take its bounds."""
    found = _run(state, model, budget, proves=True)
    state.conclude(found)
    return found


def _run(
    state: SearchState,
    model: Model | LoadRelaxation,
    budget: Budget,
    *,
    finds: bool = False,
    proves: bool = False,
) -> Found:
    """Run a model; it may find values of the first quantity, or prove bounds on it."""
    incumbent, options, settings = state.incumbent, state.context.options, state.settings
    limits = Limits(
        seconds=state.clock.seconds_left(budget.share),
        deterministic=state.clock.deterministic_left(budget.deterministic),
        workers=options.workers,
        seed=options.seed,
        enough=state.enough if finds else None,
        round_robin=settings.round_robin,
        log=settings.log,
    )
    found = run(
        model,
        limits,
        state.context.reports,
        proves=proves,
        on_solution=lambda value: incumbent.report(value) if finds else None,
        on_bound=lambda bound: incumbent.prove(bound) if proves else None,
    )
    state.clock.spend(found.deterministic)
    if found.interrupted:
        if finds:
            state.take(found)
        raise KeyboardInterrupt
    return found
