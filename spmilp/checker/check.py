"""The one way to ask whether a plan is valid."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from spmilp.checker.rules import RULES, Case, Finding, structure
from spmilp.checker.rules.ends import claims
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

LISTED = 20
"""Violations listed of each rule."""

COUNTED = 10_000
"""Violations that are looked for by each function; a plan so broken is not searched further."""


TABLES = ("placements", "residencies", "transfers", "tensors")
"""All of a plan that rules look at, but for its claim."""


def check(problem: Problem, plan: Plan) -> tuple[Violation, ...]:
    """Return what makes a plan invalid; nothing for a valid one.

    Each rule of ``docs/format.md`` is asked, and its first 20 violations are listed. If there are
    more, a last one says how many. When the plan's structure is broken, only that is reported: the
    other rules could not follow the references.

    Parameters
    ----------
    problem
        What the plan answers.
    plan
        Of any origin; nothing that it says is believed.

    Returns
    -------
    tuple of Violation
        Each with its ``rule``, the ``objects`` that it is about, and a ``message`` with both
        numbers. Empty for a valid plan.

    Examples
    --------
    >>> spmilp.check(result.problem, result.plan)
    ()
    """
    found = _asked("structure", structure(problem, plan))
    if found:
        return found
    case = Case(problem, plan)
    return tuple(violation for rule in RULES for violation in _asked(rule.__name__, rule(case)))


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What :func:`check` says of one plan of one problem, so that it need not be asked again.

    It holds for these very objects: a plan that was made from this one has none. ``seconds`` says
    how long the check has taken, with what it rests on.
    """

    problem: Problem
    plan: Plan
    violations: tuple[Violation, ...]
    seconds: float = 0.0

    @classmethod
    def on(cls, problem: Problem, plan: Plan, known: Iterable["Verdict"] = ()) -> "Verdict":
        """Check a plan.

        Where a verdict that is ``known`` finds nothing wrong with a plan of the problem that
        differs in nothing but what it claims of itself, only that is checked.
        """
        began = perf_counter()
        for one in known:
            if one.problem is problem and one.holds_but_for_the_claim(plan):
                found = _asked("claims", claims(Case(problem, plan)))
                return cls(problem, plan, found, one.seconds + perf_counter() - began)
        found = check(problem, plan)
        return cls(problem, plan, found, perf_counter() - began)

    def holds_but_for_the_claim(self, plan: Plan) -> bool:
        """Say whether this verdict holds for all of a plan but its claim."""
        return not self.violations and all(
            getattr(plan, table) is getattr(self.plan, table) for table in TABLES
        )

    def is_on(self, problem: Problem, plan: Plan) -> bool:
        """Say whether these are the objects that were checked."""
        return self.problem is problem and self.plan is plan


def _asked(rule: str, findings: Iterable[Finding]) -> tuple[Violation, ...]:
    return listed(Violation(rule, *finding) for finding in findings)


def listed(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the first violations of one rule, and how many more there are."""
    found = list(islice(violations, COUNTED))
    if len(found) > LISTED:
        rule = found[0].rule
        more = f"{'at least ' * (len(found) == COUNTED)}{len(found) - LISTED}"
        found[LISTED:] = [Violation(rule, (), f"and {more} more violations of {rule}")]
    return tuple(found)
