"""How good a run was over its whole time: the primal integral."""

from collections.abc import Iterable

from spmilp.comparison.run import Moment


def primal_gap(objective: int | None, best: int) -> float:
    """Return by how much a plan is worse than the best one known, 0 to 1; 1 without a plan.

    ``|objective - best| / max(|objective|, |best|)``, 0 if both are 0.
    """
    if objective is None:
        return 1.0
    largest = max(abs(objective), abs(best))
    return abs(objective - best) / largest if largest else 0.0


def incumbents(course: Iterable[Moment], final: int | None) -> list[tuple[float, int]]:
    """Return when a run had a better plan than before, and its objective.

    Without an accepted plan there is none at all: what was reported on the way cannot be believed.
    Nothing that was reported counts as better than the accepted plan.
    """
    if final is None:
        return []
    found: list[tuple[float, int]] = []
    for moment in course:
        if moment.objective is None:
            continue
        value = max(moment.objective, final)
        if not found or value < found[-1][1]:
            found.append((moment.seconds, value))
    return found


def primal_integral(steps: Iterable[tuple[float, int]], best: int | None, horizon: float) -> float:
    """Return the seconds of the horizon, each weighed by the primal gap at that time.

    From 0 (the best plan at once) to the horizon (no plan at all). T. Berthold, *Measuring the
    impact of primal heuristics*, Operations Research Letters 41 (2013).

    Parameters
    ----------
    steps
        Seconds and objectives of :func:`incumbents`; the last one holds until the horizon.
    best
        The best objective that is known; ``None`` if no plan is.
    horizon
        Seconds; the time limit of the run.
    """
    if best is None:
        return horizon
    total = since = 0.0
    gap = 1.0
    for seconds, objective in steps:
        now = min(seconds, horizon)
        total += gap * (now - since)
        gap, since = primal_gap(objective, best), now
    return total + gap * (horizon - since)
