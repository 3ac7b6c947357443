"""What a little more of what binds a plan saves: solved again, as long as without the change."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from spmilp import quantities
from spmilp.analysis.analyse import analyse
from spmilp.analysis.binding import Binding, Holder, Reason, cycles_by_binding, steps_of
from spmilp.bounds.best import best_bound
from spmilp.explanation.alike import alike_engines, alike_links, alike_memories, of_all
from spmilp.machine.machine import Machine
from spmilp.machine.read import as_machine_file
from spmilp.pipeline import solve_problem
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.report.explanation import paragraph, section
from spmilp.result import checked
from spmilp.solvers.base import SolveOptions
from spmilp.units import Cycles
from spmilp.warm_start import carried_over, handed_on, on_machine

SOLVER = "auto"
MOST = 3
"""Changes that are tried, of what binds most."""

KIB = 1024

WORSE = "faster transfers hold more of each link, and fewer go side by side"
"""Why a higher rate may be worse: a transfer reserves as much of each link as it can use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The makespan of the best checked plan that was found with a change, and what that saves."""

    change: str
    makespan: Cycles
    saved: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All that was asked of a plan.

    Parameters
    ----------
    seconds
        Of the search for each, and for ``unchanged``: the makespan on the machine as it is.
    """

    seconds: float
    unchanged: Cycles
    changes: tuple[Answer, ...]

    def text(self) -> str:
        """Return it as a section of an explanation."""
        each = f"{self.seconds:g} s of search each, all from this plan"
        return section(f"What a little more saves ({each})", self._lines())

    def data(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "seconds": self.seconds,
            "unchanged": self.unchanged,
            "changes": [asdict(answer) for answer in self.changes],
        }

    def _lines(self) -> Iterator[str]:
        yield f"- the machine as it is: {self.unchanged:,} cycles"
        for answer in self.changes:
            share = quantities.percent(answer.saved / self.unchanged)
            saves = f"saves {answer.saved:,} ({share})" if answer.saved else "saves nothing"
            if answer.saved < 0:
                saves = f"{-answer.saved:,} more: {WORSE}"
            yield from paragraph(f"{answer.change}: {answer.makespan:,} cycles, {saves}", "- ")
        if not self.changes:
            yield from paragraph(
                "No memory, DMA engine or link binds it: only fewer cycles of tasks or more cores "
                "would help."
            )


def what_if(problem: Problem, plan: Plan, seconds: float) -> Answers:
    """Search for better plans on the machine as it is, and with a little more of what binds.

    A plan of the machine as it is counts for a changed one too, as far as it can be run there.
    """
    problem = replace(problem, objective=Objective.of(Quantity.MAKESPAN))
    options = SolveOptions(time_limit=seconds)
    start = handed_on(problem, plan, best_bound(problem))
    unchanged = checked(problem, solve_problem(problem, SOLVER, options, start))
    best = unchanged.plan or start
    found = []
    for change, machine in _changes(problem, plan):
        target = on_machine(problem, as_machine_file(machine))
        bound = best_bound(target)
        best_there, hint = (carried_over(target, each, bound) for each in (best, start))
        again = checked(target, solve_problem(target, SOLVER, options, hint))
        plans = [each for each in (best_there, again.plan) if each is not None]
        makespans = [each.claim.makespan for each in plans]
        if makespans:
            makespan = min(makespans)
            saved = best.claim.makespan - makespan
            found.append(Answer(change=change, makespan=makespan, saved=saved))
    return Answers(seconds=seconds, unchanged=best.claim.makespan, changes=tuple(found))


def _changes(problem: Problem, plan: Plan) -> Iterator[tuple[str, Machine]]:
    """Yield changes of what binds most, each with its words, none twice."""
    analysis = analyse(problem, plan)
    steps = steps_of(analysis.subject, analysis.chain)
    seen: list[Machine] = []
    for binding, _ in cycles_by_binding(steps, 0, plan.claim.makespan):
        changed = _change(problem.machine, binding)
        if changed is not None and changed[1] not in seen and len(seen) < MOST:
            seen.append(changed[1])
            yield changed


def _change(machine: Machine, binding: Binding) -> tuple[str, Machine] | None:
    """Return a little more of what binds, and of all that is alike; ``None`` for cores."""
    if binding.holder is Holder.MEMORY:
        memories = alike_memories(machine, binding.index)
        if memories[0].size is None:
            return None
        more = {each.index: replace(each, size=(each.size or 0) + KIB) for each in memories}
        changed = tuple(more.get(each.index, each) for each in machine.memories)
        name = of_all(machine.memories[binding.index].name, len(memories), "memories")
        return f"1 KiB more in {name}", replace(machine, memories=changed)
    if binding.holder is Holder.ENGINE:
        engines = {each.index for each in alike_engines(machine, binding.index)}
        name = of_all(machine.engines[binding.index].name, len(engines), "DMA engines")
        if binding.reason is Reason.RATE:
            faster = [
                replace(each, rate=each.rate + 1) if each.index in engines else each
                for each in machine.engines
            ]
            return f"1 B/cycle more for {name}", replace(machine, engines=tuple(faster))
        wider = [
            replace(each, channels=each.channels + 1) if each.index in engines else each
            for each in machine.engines
        ]
        return f"1 channel more for {name}", replace(machine, engines=tuple(wider))
    if binding.holder is Holder.LINK:
        links = {each.index for each in alike_links(machine, binding.index)}
        like = machine.links[binding.index]
        name = of_all(f"{like.source} → {like.target}", len(links), "links")
        quicker = [
            replace(each, rate=each.rate + 1) if each.index in links else each
            for each in machine.links
        ]
        return f"1 B/cycle more on {name}", replace(machine, links=tuple(quicker))
    return None
