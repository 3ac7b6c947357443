"""How long each of several networks takes in a plan, and by how much it misses its deadline."""

from dataclasses import dataclass

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.several import Member, members_of, owners
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Cycles from the begin of a period, when its inputs are there, until a network has ended."""

    member: Member
    cycles: Cycles

    @property
    def shortfall(self) -> Cycles:
        """By how many cycles the deadline is missed; 0 if it is met, or there is none."""
        return 0 if self.member.deadline is None else max(0, self.cycles - self.member.deadline)


def latencies(problem: Problem, plan: Plan) -> tuple[Latency, ...]:
    """Return the latency of each of several networks: of its last inference in a period.

    Its last task or transfer ends it. A plan for one inference begins at cycle 0.
    """
    members, (of_tasks, of_buffers) = members_of(problem), owners(problem)
    begins, ends = 0 if plan.stream is None else plan.stream.begins, dict[int | None, Cycles]()
    for run, owner in zip(plan.placements, of_tasks, strict=True):
        ends[owner] = max(ends.get(owner, 0), run.end - begins)
    for move in plan.transfers:
        owner = of_buffers[problem.slices[move.slice].buffer]
        ends[owner] = max(ends.get(owner, 0), move.end - begins)
    return tuple(
        Latency(member=member, cycles=ends.get(number, 0)) for number, member in enumerate(members)
    )


def shortfall(problem: Problem, plan: Plan) -> Cycles:
    """Return by how many cycles networks miss their deadlines, all together."""
    if not members_of(problem):
        return 0
    return sum(each.shortfall for each in latencies(problem, plan))
