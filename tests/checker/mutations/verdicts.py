"""What the checker and the second checker say of a plan's file."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import TypeAlias

from docs import checker as second
from spmilp.checker.check import check
from spmilp.errors import FileError
from spmilp.plan.file import plan_bytes, read_plan
from spmilp.plan.plan import Plan
from spmilp.problem.file import problem_bytes
from spmilp.problem.problem import Problem
from tests.checker.mutations import KINDS
from tests.checker.mutations.mutant import (
    READ_WITH_PROBLEM,
    Fields,
    Mutant,
    NothingToChangeError,
    Subject,
)

Verdict: TypeAlias = frozenset[str]
"""The rules that are broken; ``refused`` alone if the file cannot be read."""

REFUSED: Verdict = frozenset({"refused"})


@dataclass(frozen=True, slots=True)
class Pair:
    """A problem and a plan of it, for both checkers."""

    problem: Problem
    plan: Plan
    subject: Subject
    read: second.Row

    def mutants(self, random: Random, count: int) -> Iterator[tuple[str, Fields]]:
        """Yield so many mutants, with the names of their kinds; kinds take turns."""
        names = sorted(KINDS)
        random.shuffle(names)
        for name in islice(cycle(names), count):
            mutant = Mutant(self.subject, random)
            try:
                KINDS[name](mutant)
            except NothingToChangeError:
                continue
            yield name, mutant.plan

    def verdicts(self, kind: str, plan: Fields, file: Path) -> tuple[Verdict, Verdict]:
        """Return what the checker says of a mutant, and what the second one says.

        Parameters
        ----------
        file
            Where the mutant is written.
        """
        data = json.dumps(plan).encode()
        with file.open("r+b" if file.exists() else "wb") as opened:
            opened.write(data)
            opened.truncate()  # on opening it takes some file systems ten times longer
        # Hashing the problem takes longer than checking; few kinds touch the hash.
        problem = self.problem if kind in READ_WITH_PROBLEM else None
        return of_checker(self.problem, file, problem), of_second(self.read, data)


def pair(problem: Problem, plan: Plan) -> Pair:
    """Return a plan as both checkers read it."""
    text = problem_bytes(problem)
    subject = Subject(json.loads(text), json.loads(plan_bytes(plan, problem)))
    return Pair(problem, plan, subject, second.read_problem(text))


def of_checker(problem: Problem, file: Path, read_with: Problem | None) -> Verdict:
    """Return what the checker says of a plan in a file."""
    try:
        plan = read_plan(file, read_with)
    except FileError:
        return REFUSED
    return frozenset(violation.rule for violation in check(problem, plan))


def of_second(problem: second.Row | bytes, plan: bytes) -> Verdict:
    """Return what the second checker says of a plan."""
    try:
        read = second.read_problem(problem) if isinstance(problem, bytes) else problem
        return frozenset(rule for rule, _ in second.violations(read, second.read_plan(plan, read)))
    except second.RefusedError:
        return REFUSED
