"""The front door of explanations: a plan, a problem or a model in, text and data out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

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
from spmilp.frontend.graph import Network
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.problem.file import read_problem
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.result import Result, checked
from spmilp.solvers.base import SolveOptions
from spmilp.source import DEFAULT_MACHINE, MachineGiven, load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.units import Bytes, Cycles

MOST_PARTS = 4
"""Parts of what is too large that are named, the largest first."""

SOLVER = "list"
"""The solver that looks for plans to prove that something fits."""

SOLVER_WITH_PINS, SECONDS_WITH_PINS = "cpsat", 5.0
"""The same where pins say what the list scheduler does not keep to."""


def explain(
    source: str | Path | Problem | Result,
    machine: MachineGiven = None,
    *,
    dim: Mapping[str, int] | None = None,
    input: Mapping[str, object] | None = None,
    passes: str = "",
    time_limit: str | float = 20.0,
) -> Explanation:
    """Say why a plan is as slow as it is; or why a problem or a model has none, and what helps.

    Of a problem or a model that fits, the plan of the list scheduler is explained.

    Parameters
    ----------
    source
        A result; a problem or its file; or an ONNX model, ``onnx:NAME`` included.
    machine, dim, input, passes
        For a model, as :func:`spmilp.solve` has them.
    time_limit
        After which no further change is tried: ``"60s"``, or seconds.

    Returns
    -------
    Explanation
        It shows as text of 80 columns; ``data`` has the same with names and numbers.

    Raises
    ------
    SpmilpError
        If a file cannot be used, or an operator cannot be lowered.

    Examples
    --------
    >>> spmilp.explain("net.onnx", "gap8")
    """
    seconds = quantities.duration(time_limit)
    if isinstance(source, Result):
        if source.plan is None and not source.violations:
            return _of_problem(source.problem, seconds)
        return source.explain()
    if isinstance(source, Problem) or str(source).endswith(".json"):
        try:
            problem = pipeline.tiled_problem(source, machine, dim=dim, input=input)[0].problem
        except PinError:
            # What its pins contradict is to be explained.
            problem = source if isinstance(source, Problem) else read_problem(source)
        return _of_problem(problem, seconds)
    file = as_machine_file(machine or DEFAULT_MACHINE)
    network, _ = load(str(source), file, dim=dim, input=input, passes=passes)
    return _of_model(network, file, seconds)


def _of_problem(problem: Problem, seconds: float) -> Explanation:
    why = infeasibility_of_pins(problem) or infeasibility_of(problem)
    if why is None:
        result = _listed(problem)
        if result.plan is not None:
            return result.explain()
        why = infeasibility_in_schedule(problem) or _other(network_name(problem), result.reason)
        if problem.pins and _makespan(replace(problem, pins=NO_PINS)) is not None:
            why = replace(why, cause=Obstacle.PINS)

    def plan_on(machine: Machine) -> Cycles | None:
        changed = replace(problem, machine=machine)
        return None if infeasibility_of(changed) is not None else _makespan(changed)

    name, trials = network_name(problem), Trials(plan_on, seconds)
    if why.cause is Obstacle.PINS:
        remedies = tuple(without_pins(problem, trials, _makespan))
    else:
        remedies = remedies_for(problem.machine, why, trials)
    return why_it_does_not_fit(name, problem.machine, why, remedies, trials.count)


def _of_model(network: Network, file: MachineFile, seconds: float) -> Explanation:
    def problem_on(machine: Machine) -> Problem:
        return choose_tiles(NetworkOnMachine.of(network, as_machine_file(machine))).problem

    try:
        problem = problem_on(file.machine)
    except DoesNotFitError as error:
        why = infeasibility_of_tiles(file.machine, error) or _other(network.name, str(error))
    else:
        result = _listed(problem)
        if result.plan is not None:
            return result.explain()
        found = infeasibility_of(problem) or infeasibility_in_schedule(problem)
        why = found or _other(network.name, result.reason)
    trials = Trials(lambda machine: _makespan(problem_on(machine)), seconds)
    remedies = remedies_for(file.machine, why, trials)
    return why_it_does_not_fit(network.name, file.machine, why, remedies, trials.count)


def _other(name: str, reason: str) -> Infeasibility:
    return Infeasibility(cause=Obstacle.OTHER, what=name, said=reason, is_proven=False)


def _makespan(problem: Problem) -> Cycles | None:
    return _listed(problem).makespan


def _listed(problem: Problem) -> Result:
    """Return the checked plan of the list scheduler, or why it finds none.

    Where it does not keep to the pins that there are, another solver has a few seconds.
    """
    if problem.pins.kinds() <= find_solver(SOLVER).keeps:
        answer = pipeline.solve_problem(problem, SOLVER, SolveOptions())
    else:
        limit = SolveOptions(time_limit=SECONDS_WITH_PINS)
        answer = pipeline.solve_problem(problem, SOLVER_WITH_PINS, limit)
    return checked(problem, answer, asked=SOLVER)


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
