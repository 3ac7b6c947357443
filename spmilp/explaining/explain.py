"""The front door of explanations: a plan, a problem or a model in, text and data out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from spmilp import pipeline, quantities
from spmilp.bounds.best import best_bound
from spmilp.errors import DoesNotFitError, PinError
from spmilp.explaining.chain import Binding, Holder, Reason, cycles_by_binding
from spmilp.explaining.infeasible import (
    Infeasibility,
    Obstacle,
    infeasibility_in_schedule,
    infeasibility_of,
    infeasibility_of_pins,
    infeasibility_of_tiles,
)
from spmilp.explaining.remedies import (
    Remedy,
    Trials,
    alike_memories,
    grown,
    of_all,
    remedies_for,
    smaller_tiles,
    without_pins,
)
from spmilp.explaining.slow import analyse
from spmilp.explaining.text import Explanation, network_name, paragraph, section
from spmilp.frontend.graph import Network
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.plan.plan import Plan
from spmilp.problem.file import read_problem
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.result import Result, checked
from spmilp.solvers.base import SolveOptions
from spmilp.source import DEFAULT_MACHINE, load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.units import Cycles
from spmilp.warm_start import carried_over, handed_on, on_machine

SOLVER = "list"
"""The solver that looks for plans to prove that something fits."""

SOLVER_WITH_PINS, SECONDS_WITH_PINS = "cpsat", 5.0
"""The same where pins say what the list scheduler does not keep to."""

SOLVER_OF_CHANGES = "auto"
"""The solver that searches for the plans of ``what_if``."""

MOST_CHANGES = 3
"""Changes that ``what_if`` tries, of the resources that limit the plan most."""

KIB = 1024


def explain(
    source: str | Path | Problem | Result,
    machine: str | Path | MachineFile | Machine | None = None,
    *,
    dim: Mapping[str, int] | None = None,
    passes: str = "",
    time_limit: str | float = 20.0,
    what_if: str | float | None = None,
) -> Explanation:
    """Say why a plan is as slow as it is; or why a problem or a model has none, and what helps.

    Of a problem or a model that fits, the plan of the list scheduler is explained.

    Parameters
    ----------
    source
        A result; a problem or its file; or an ONNX model, ``onnx:NAME`` included.
    machine, dim, passes
        For a model, as :func:`spmilp.solve` has them.
    time_limit
        After which no further change is tried: ``"60s"``, or seconds.
    what_if
        Also search for so long for what a little more of what binds a plan saves, and as long on
        the machine as it is.

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
        return _of_result(source, seconds, what_if)
    if isinstance(source, Problem) or str(source).endswith(".json"):
        try:
            problem = pipeline.tiled_problem(source, machine, dim=dim)[0].problem
        except PinError:
            # What its pins contradict is to be explained.
            problem = source if isinstance(source, Problem) else read_problem(source)
        return _of_problem(problem, seconds, what_if)
    file = as_machine_file(machine or DEFAULT_MACHINE)
    network, _ = load(str(source), file, dim=dim, passes=passes)
    return _of_model(network, file, seconds, what_if)


def _of_result(result: Result, seconds: float, searched: str | float | None) -> Explanation:
    if result.plan is None and not result.violations:
        return _of_problem(result.problem, seconds, searched)
    said = result.explain()
    if searched is None or result.plan is None:
        return said
    return _with_savings(said, result.problem, result.plan, quantities.duration(searched))


def _of_problem(problem: Problem, seconds: float, searched: str | float | None) -> Explanation:
    why = infeasibility_of_pins(problem) or infeasibility_of(problem)
    if why is None:
        result = _listed(problem)
        if result.plan is not None:
            return _of_result(result, seconds, searched)
        why = _without_proof(problem, result, network_name(problem))
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


def _of_model(
    network: Network, file: MachineFile, seconds: float, searched: str | float | None
) -> Explanation:
    def problem_on(machine: Machine) -> Problem:
        return choose_tiles(NetworkOnMachine.of(network, as_machine_file(machine))).problem

    try:
        problem = problem_on(file.machine)
    except DoesNotFitError as error:
        why = infeasibility_of_tiles(file.machine, error) or _other(network.name, str(error))
    else:
        result = _listed(problem)
        if result.plan is not None:
            return _of_result(result, seconds, searched)
        why = infeasibility_of(problem) or _without_proof(problem, result, network.name)
    trials = Trials(lambda machine: _makespan(problem_on(machine)), seconds)
    smaller = smaller_tiles(network, file.machine, trials, _makespan) if why.task else None
    first = () if smaller is None else (smaller,)
    remedies = (*first, *remedies_for(file.machine, why, trials))
    return why_it_does_not_fit(network.name, file.machine, why, remedies, trials.count)


def _without_proof(problem: Problem, result: Result, name: str) -> Infeasibility:
    return infeasibility_in_schedule(problem) or _other(name, result.reason)


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
    memory = None if why.memory is None else machine.memories[why.memory]
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
        "required": why.needed,
        "usable": why.usable,
        "size": None if memory is None else memory.size,
        "largest": [{"name": part, "bytes": size} for part, size in why.parts],
        "remedies": [asdict(remedy) for remedy in remedies],
    }
    return Explanation(text="\n\n".join(text), data=data)


def _in_the_way(machine: Machine, why: Infeasibility) -> Iterator[str]:
    """Yield the sentence, required, available and reserved bytes, and the largest buffers."""
    yield from paragraph(f"{why.what}: {why.said}.")
    if why.memory is not None and why.needed is not None:
        memory = machine.memories[why.memory]
        size, usable = memory.size or 0, why.usable or 0
        reserved = size - (memory.usable or 0)
        yield f"{why.needed:>13,} B required at one time{', at least' * why.is_proven}"
        yield f"{usable:>13,} B usable in {memory.name}"
        yield f"{reserved:>13,} B reserved there, of {quantities.shown_bytes(size)}"
        if why.needed > usable:
            yield f"{why.needed - usable:>13,} B too many"
    if why.parts:
        yield "largest:"
        for name, size in why.parts:
            yield f"{size:>13,} B {name}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedMakespan:
    """The makespan of the best checked plan that was found with a change, and what that saves."""

    change: str
    makespan: Cycles
    saved: Cycles


def _with_savings(said: Explanation, problem: Problem, plan: Plan, seconds: float) -> Explanation:
    """Add what a little more of what binds a plan saves: better plans are searched for.

    Each search takes so many seconds, on the machine as it is and with each change. A plan of the
    machine as it is counts for a changed one too, as far as it can be run there.
    """
    problem = replace(problem, objective=Objective.of(Quantity.MAKESPAN))
    options = SolveOptions(time_limit=seconds)
    start = handed_on(problem, plan, best_bound(problem))
    answer = pipeline.solve_problem(problem, SOLVER_OF_CHANGES, options, start)
    best = checked(problem, answer).plan or start
    unchanged = best.claim.makespan
    found = []
    for change, machine in _changes(problem, plan):
        target = on_machine(problem, as_machine_file(machine))
        bound = best_bound(target)
        best_there, hint = (carried_over(target, each, bound) for each in (best, start))
        again = pipeline.solve_problem(target, SOLVER_OF_CHANGES, options, hint)
        plans = (best_there, checked(target, again).plan)
        makespans = [each.claim.makespan for each in plans if each is not None]
        if makespans:
            least = min(makespans)
            found.append(ChangedMakespan(change=change, makespan=least, saved=unchanged - least))
    heading = f"What a little more saves ({seconds:g} s of search each, all from this plan)"
    data = {"seconds": seconds, "unchanged": unchanged, "changes": [asdict(each) for each in found]}
    return said.with_part("what_if", section(heading, _savings(unchanged, found)), data)


def _savings(unchanged: Cycles, found: Sequence[ChangedMakespan]) -> Iterator[str]:
    yield f"- the machine as it is: {unchanged:,} cycles"
    for each in found:
        share = quantities.percent(each.saved / unchanged)
        saves = f"saves {each.saved:,} ({share})" if each.saved else "saves nothing"
        if each.saved < 0:
            # A transfer reserves as much of each link as it can use.
            why = "faster transfers hold more of each link, and fewer go side by side"
            saves = f"{-each.saved:,} more: {why}"
        yield from paragraph(f"{each.change}: {each.makespan:,} cycles, {saves}", "- ")
    if not found:
        yield from paragraph(
            "No memory, DMA engine or link binds it: only fewer cycles of tasks or more cores "
            "would help."
        )


def _changes(problem: Problem, plan: Plan) -> Iterator[tuple[str, Machine]]:
    """Yield changes of what binds most, each with its words, none twice."""
    steps = analyse(problem, plan).steps
    seen: list[Machine] = []
    for binding, _ in cycles_by_binding(steps, 0, plan.claim.makespan):
        changed = _change(problem.machine, binding)
        if changed is not None and changed[1] not in seen and len(seen) < MOST_CHANGES:
            seen.append(changed[1])
            yield changed


def _change(machine: Machine, binding: Binding) -> tuple[str, Machine] | None:
    """Return a little more of what binds, and of all that is alike; ``None`` for cores."""
    index, kinds = binding.index, [memory.kind for memory in machine.memories]
    drams = {each.name for each in machine.memories if each.kind is MemoryKind.DRAM}
    if binding.holder is Holder.MEMORY:
        alike = alike_memories(machine, index)
        name = of_all(machine.memories[index].name, len(alike), "memories")
        return (f"1 KiB more in {name}", grown(machine, alike, KIB)) if alike[0].size else None
    if binding.holder is Holder.ENGINE:
        is_rate = binding.reason is Reason.RATE
        engines, like = _more(
            machine.engines,
            index,
            lambda e: (
                *(e.channels, e.rate, e.setup, e.loads, e.stores),
                None if e.owner is None else kinds[e.owner],
            ),
            lambda e: replace(e, rate=e.rate + is_rate, channels=e.channels + (not is_rate)),
        )
        name = of_all(machine.engines[index].name, like, "DMA engines")
        more = "1 B/cycle" if is_rate else "1 channel"
        return f"{more} more for {name}", replace(machine, engines=engines)
    if binding.holder is Holder.LINK:
        links, like = _more(
            machine.links,
            index,
            lambda each: (each.rate, each.latency, each.source in drams, each.target in drams),
            lambda each: replace(each, rate=each.rate + 1),
        )
        link = machine.links[index]
        name = of_all(f"{link.source} → {link.target}", like, "links")
        return f"1 B/cycle more on {name}", replace(machine, links=links)
    return None


_Part = TypeVar("_Part")


def _more(
    parts: Sequence[_Part],
    index: int,
    key: Callable[[_Part], object],
    change: Callable[[_Part], _Part],
) -> tuple[tuple[_Part, ...], int]:
    """Return a machine's parts with all changed that are like one by a key, and how many these are.

    Links of a DRAM, and engines of other kinds of memories, are changed by themselves.
    """
    like = [key(each) == key(parts[index]) for each in parts]
    changed = (change(each) if is_like else each for each, is_like in zip(parts, like, strict=True))
    return tuple(changed), sum(like)
