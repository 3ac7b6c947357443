"""What every exported file says of its origin."""

from dataclasses import dataclass

from spmilp.files import sha256_of
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.plan.write import plan_text
from spmilp.problem.problem import Problem
from spmilp.problem.write import problem_sha256
from spmilp.version import __version__

UNKNOWN = "0" * 64
"""The SHA-256 of a file that the problem does not name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The origin of an export; equal plans give equal stamps, whenever they are made.

    Parameters
    ----------
    tool
        Program and version.
    model, machine, problem, plan
        SHA-256 of the files, in lower-case hex; zeros where the problem does not name one.
    status
        What is known of the plan: the claimed quantity, its bound and the solver.
    """

    tool: str
    model: str
    machine: str
    problem: str
    plan: str
    status: str

    def lines(self, name: str, version: str) -> tuple[str, ...]:
        """Return ``key: value`` for the head of a file of format ``name``."""
        return (
            f"format: {name} {version}",
            f"tool: {self.tool}",
            f"model_sha256: {self.model}",
            f"machine_sha256: {self.machine}",
            f"problem_sha256: {self.problem}",
            f"plan_sha256: {self.plan}",
            f"plan: {self.status}",
        )

    def fields(self, name: str, version: str) -> dict[str, str]:
        """Return the same as fields of a JSON object."""
        pairs = [line.partition(": ") for line in self.lines(name, version)[1:]]
        return {
            "format": name,
            "format_version": version,
            **{key: value for key, _, value in pairs},
        }


def stamp_of(problem: Problem, plan: Plan) -> Stamp:
    """Return the stamp of a plan; its hash is that of the file that spmilp writes for it."""
    sources = dict(problem.sources)
    first = problem.objective.first
    value = claimed(plan.claim).of(first)
    return Stamp(
        tool=f"spmilp {__version__}",
        model=sources.get("model") or UNKNOWN,
        machine=sources.get("machine") or UNKNOWN,
        problem=problem_sha256(problem),
        plan=sha256_of(plan_text(plan, problem).encode()),
        status=f"{first.value} {value}, bound {plan.claim.bound}",
    )
