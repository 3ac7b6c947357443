"""Pins that keep every plan away, and which of them to leave out."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from spmilp.errors import PinError
from spmilp.explanation.cause import Cause, Misfit
from spmilp.explanation.misfit import misfit_of
from spmilp.explanation.remedies import Remedy, Trials
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import NO_PINS, Pins
from spmilp.problem.problem import Problem
from spmilp.solvers.common.narrow import narrowed
from spmilp.units import Cycles

MOST_PINS = 16
"""That are left out one by one; of more, all at once."""


def misfit_of_pins(problem: Problem) -> Misfit | None:
    """Return a proof that pins keep every plan away that there might be without them."""
    if not problem.pins or misfit_of(replace(problem, pins=NO_PINS)) is not None:
        return None
    try:
        refuse_contradictions(problem)
        left = misfit_of(narrowed(problem).problem)
    except PinError as error:
        said = str(error).removeprefix("pins: ")
        return Misfit(cause=Cause.PINS, what="pins", said=f"they contradict each other: {said}")
    if left is None:
        return None
    return replace(left, cause=Cause.PINS, said=f"with the pins that there are, {left.said}")


def without_pins(
    problem: Problem, trials: Trials, solved: Callable[[Problem], Cycles | None]
) -> Iterator[Remedy]:
    """Yield the pins without any of which a checked plan was found; else that of no pins."""
    found = False
    for name, pins in [*_without_one(problem)][:MOST_PINS]:
        less = replace(problem, pins=pins)
        makespan = trials.tried(partial(solved, less))
        if makespan is not None:
            found = True
            yield Remedy(change=f"without the pin of {name}", makespan=makespan)
    if not found:
        free = replace(problem, pins=NO_PINS)
        makespan = trials.tried(partial(solved, free))
        if makespan is not None:
            yield Remedy(change="without any pins", makespan=makespan)


def _without_one(problem: Problem) -> Iterator[tuple[str, Pins]]:
    pins = problem.pins
    for core in pins.forbidden:
        name = problem.machine.cores[core].name
        yield (
            f"core {name}, which is forbidden",
            replace(pins, forbidden=tuple(each for each in pins.forbidden if each != core)),
        )
    for task in pins.tasks:
        yield (
            f"task {problem.tasks[task.task].name}",
            replace(pins, tasks=tuple(each for each in pins.tasks if each != task)),
        )
    for buffer in pins.buffers:
        yield (
            f"buffer {problem.buffers[buffer.buffer].name}",
            replace(pins, buffers=tuple(each for each in pins.buffers if each != buffer)),
        )
