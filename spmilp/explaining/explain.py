"""The front door of explanations: a plan, a problem or a model in, text and data out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from spmilp import pipeline, quantities
from spmilp.errors import DoesNotFitError, PinError, Shortage
from spmilp.explaining.infeasible import (
    Infeasibility,
    Obstacle,
    infeasibility_in_schedule,
    infeasibility_of,
    infeasibility_of_pins,
    infeasibility_of_tiles,
    memory_named,
)
from spmilp.explaining.remedies import Remedy, Trials, remedies_for, without_pins
from spmilp.explaining.text import Explanation, network_name, paragraph, section
from spmilp.machine.machine import Machine
from spmilp.options import Options, with_options
from spmilp.problem.file import read_problem
from spmilp.problem.named_pins import NO_NAMED_PINS
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.result import Result
from spmilp.source import MachineGiven, NetworkSource, ProblemSource, what_is_mapped
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.units import Bytes, Cycles
from spmilp.watch import SILENT, Observer, Stage, Watch

MOST_PARTS = 4
"""Parts of what is too large that are named, the largest first."""

SOLVER = "list"
"""The solver that looks for plans to prove that something fits."""

SOLVER_WITH_PINS, SECONDS_WITH_PINS = "cpsat", 5.0
"""The same where pins say what the list scheduler does not keep to."""

SHARE_OF_PLAN, SHARE_OF_TRIAL = 0.5, 0.25
"""Of the time limit for a plan of what is given, and of what is left for that of each change."""


@with_options("dim", "pins", "passes")
def explain(
    source: str | Path | Problem | Result,
    machine: MachineGiven = None,
    *,
    time_limit: str | float = 20.0,
    observer: Observer = SILENT,
    **given: Any,
) -> Explanation:
    """Say why a plan is as slow as it is; or why a problem or a model has none, and what helps.

    Of a problem or a model that fits, the plan of the list scheduler is explained. A
    ``KeyboardInterrupt`` ends the search for a plan, or for what helps; what is known is said.

    Parameters
    ----------
    source
        A result; a problem or its file; or an ONNX model, ``onnx:NAME`` included.
    machine
        For a model, as :func:`spmilp.solve` has it.
    time_limit
        After which nothing more is tried: ``"60s"``, or seconds. A plan has half of it.
    observer
        Hears how it gets on.
    given
        ``dim``, ``input``, ``pins`` and ``passes``, as :func:`spmilp.solve` has them.

    Raises
    ------
    SpmilpError
        If a file cannot be used, or an operator cannot be lowered.

    Examples
    --------
    >>> spmilp.explain("net.onnx", "gap8")
    """
    if isinstance(source, Result):
        if source.plan is not None or source.violations:
            observer.on_stage(Stage.EXPLAINING)
            return source.explain()
        source = source.problem
    how = {"solver": SOLVER, "tiles": "first", "time_limit": time_limit, "workers": 1}
    options = Options.of({**given, **how})
    try:
        mapped = what_is_mapped(source, machine, options, observer)
    except PinError:
        is_problem = isinstance(source, Problem) or str(source).endswith(".json")
        if options.pins != NO_NAMED_PINS or not is_problem:
            raise
        # What its own pins contradict is to be explained.
        problem = source if isinstance(source, Problem) else read_problem(source)
        mapped = ProblemSource(problem=problem)
    return _explained(mapped, options, observer)


def _explained(
    source: ProblemSource | NetworkSource, options: Options, observer: Observer
) -> Explanation:
    if isinstance(source, ProblemSource):
        name, machine = network_name(source.problem), source.problem.machine
    else:
        name, machine = source.origin.network.name, source.subject.machine

    def plan_on(machine: Machine) -> Cycles | None:
        if isinstance(source, ProblemSource):
            return makespan_of(replace(source.problem, machine=machine))
        return makespan(replace(source, subject=replace(source.subject, machine=machine)))

    def makespan_of(problem: Problem) -> Cycles | None:
        return makespan(ProblemSource(problem=problem))

    def makespan(changed: ProblemSource | NetworkSource) -> Cycles | None:
        limits = replace(options, time_limit=SHARE_OF_TRIAL * trials.seconds_left)
        watch = Watch(limits)
        start = changed.start(limits, watch)
        # Tiles that were chosen for want of time make problems that take much longer.
        if start.is_fallback or infeasibility_of(start.problem) is not None:
            return None
        result = _solved(start, limits, watch)
        if result.interrupted:
            raise KeyboardInterrupt
        return result.makespan

    trials = Trials(options.time_limit, observer.on_log)
    limits = replace(options, time_limit=SHARE_OF_PLAN * options.time_limit)
    watch = Watch(limits, observer)
    problem = None
    try:
        start = source.start(limits, watch)
        problem = start.problem
        why = infeasibility_of_pins(problem) or infeasibility_of(problem)
        if why is None:
            result = _solved(start, limits, watch)
            if result.plan is not None:
                observer.on_stage(Stage.EXPLAINING)
                return result.explain()
            why = infeasibility_in_schedule(problem) or _other(name, result.reason)
    except DoesNotFitError as error:
        why = infeasibility_of_tiles(machine, error) or _other(name, str(error))
    observer.on_stage(Stage.TRYING)
    remedies = () if problem is None else tuple(without_pins(problem, trials, makespan_of))
    if remedies:
        why = replace(why, cause=Obstacle.PINS)
    elif why.cause is not Obstacle.PINS:
        remedies = tuple(remedies_for(machine, why, trials, plan_on))
    return why_it_does_not_fit(name, machine, why, remedies, trials.count)


def _other(name: str, reason: str) -> Infeasibility:
    return Infeasibility(cause=Obstacle.OTHER, what=name, said=reason, is_proven=False)


def _solved(start: TiledProblem, options: Options, watch: Watch) -> Result:
    """Return the checked plan of the list scheduler, or why it finds none.

    Where it does not keep to the pins that there are, another solver has a few seconds.
    """
    if not start.problem.pins.kinds() <= find_solver(SOLVER).keeps:
        seconds = min(SECONDS_WITH_PINS, options.time_limit)
        options = replace(options, solver=SOLVER_WITH_PINS, time_limit=seconds)
        watch = Watch(options, watch.observer)
    return pipeline.solved(start, options, watch)


def why_it_does_not_fit(
    name: str, machine: Machine, why: Infeasibility, remedies: Sequence[Remedy], trials: int
) -> Explanation:
    """Explain why a problem or a model has no plan on a machine, and what helps."""
    proven = "no plan exists" if why.is_proven else "no plan was found"
    cores = quantities.count(len(machine.cores), "core")
    short = why.short
    memory = None if short is None else memory_named(machine, short.memory)
    text = [
        f"{name} on {machine.name} ({cores}): {proven}",
        section("What is in the way", _in_the_way(machine, why)),
        section("What helps", _what_helps(why.cause, remedies, trials)),
    ]
    data = {
        "problem": name,
        "machine": machine.name,
        "status": "infeasible" if why.is_proven else "unknown",
        "cause": str(why.cause),
        "what": why.what,
        "reason": why.said,
        "memory": None if memory is None else memory.name,
        "required": None if short is None else short.needed,
        "usable": None if short is None else short.usable,
        "size": None if memory is None else memory.size,
        "largest": [{"name": part, "bytes": size} for part, size in _largest(short)],
        "remedies": [asdict(remedy) for remedy in remedies],
    }
    return Explanation(text="\n\n".join(text), data=data)


def _in_the_way(machine: Machine, why: Infeasibility) -> Iterator[str]:
    """Yield the sentence, required, available and reserved bytes, and the largest buffers."""
    yield from paragraph(f"{why.what}: {why.said}.")
    short = why.short
    if short is None:
        return
    memory = memory_named(machine, short.memory)
    size = memory.size or 0
    yield f"{short.needed:>13,} B required at one time{', at least' * why.is_proven}"
    yield f"{short.usable:>13,} B usable in {memory.name}"
    reserved = size - (memory.usable or 0)
    yield f"{reserved:>13,} B reserved there, of {quantities.shown_bytes(size)}"
    if short.needed > short.usable:
        yield f"{short.needed - short.usable:>13,} B too many"
    yield from ["largest:"] * bool(short.parts)
    for name, part in _largest(short):
        yield f"{part:>13,} B {name}"


def _largest(short: Shortage | None) -> list[tuple[str, Bytes]]:
    """Return the names and bytes of the largest parts of what is too large."""
    parts = () if short is None else short.parts
    return sorted(parts, key=lambda part: (-part[1], part[0]))[:MOST_PARTS]


def _what_helps(cause: Obstacle, remedies: Sequence[Remedy], trials: int) -> Iterator[str]:
    if cause in _OF_THE_MACHINE:
        yield from paragraph(_OF_THE_MACHINE[cause])
        return
    if not remedies:
        yield from paragraph(
            f"No single change was found to make it fit ({quantities.count(trials, 'trial')}; "
            "--time-limit gives more time)."
        )
        return
    yield "Each was tried: the plan found with it is checked."
    for remedy in remedies:
        least = "; fewer do not suffice" if remedy.least else ""
        yield from paragraph(f"{remedy.change}: {remedy.makespan:,} cycles{least}", "- ")


_OF_THE_MACHINE = {
    Obstacle.CORE: "A core of a kind that can run it, or cycles of the task on another kind.",
    Obstacle.ROUTE: "A DMA engine that reaches both and moves so many bytes, or links in between.",
}
