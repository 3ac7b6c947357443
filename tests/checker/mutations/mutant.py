"""Kinds of damage to a plan, as changes of the content of ``plan.json``.

Each kind gets a copy of a plan to change, and what chance decides. Most mutants are invalid, some
can no longer be read, and some are as valid as the plan was: a checker has to know which.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

Fields: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """A plan and its problem as the content of their files."""

    problem: Fields
    plan: Fields

    @property
    def machine(self) -> Fields:
        """The machine in the problem."""
        found: Fields = self.problem["machine"]
        return found

    def slices(self) -> int:
        """How many slices there are, whole buffers included."""
        return len(self.problem["buffers"]) + len(self.problem["slices"])


class Mutant:
    """A copy of a subject's plan that is changed, and the chance that decides how."""

    def __init__(self, subject: Subject, random: Random) -> None:
        self.subject = subject
        self.random = random
        self.plan: Fields = deepcopy(subject.plan)

    def row(self, table: str, where: Callable[[Fields], Any] = lambda row: True) -> Fields:
        """Return any row of a table for which something holds; an error without one."""
        return self.one_of([row for row in self.plan[table] if where(row)])

    def two(self, table: str, key: Callable[[Fields], Any] = lambda row: None) -> list[Fields]:
        """Return two rows of a table with the same key."""
        first = self.row(table)
        return [first, self.row(table, lambda row: row is not first and key(row) == key(first))]

    def one_of(self, some: Iterable[Any]) -> Any:
        """Return any of some things; an error if there is none."""
        found = list(some)
        if not found:
            raise NothingToChangeError
        return self.random.choice(found)

    def other(self, count: int, than: int | None) -> int:
        """Return any number below ``count`` but one."""
        found: int = self.one_of(n for n in range(count) if n != than)
        return found

    def cycle(self) -> int:
        """Return any cycle of the plan."""
        return self.random.randint(0, max(1, self.plan["solve"]["makespan"]))

    def residency(self, index: int) -> Fields:
        """Return a residency."""
        found: Fields = self.plan["residencies"][index]
        return found


class NothingToChangeError(Exception):
    """A plan has nothing that a kind of mutation could change."""


Change: TypeAlias = Callable[[Mutant], None]
KINDS: dict[str, Change] = {}
"""Mutations by name."""
READ_WITH_PROBLEM: set[str] = set()
"""Those that only a reader notices that has the problem."""


def kind(change: Change) -> Change:
    """Add a kind of mutation under the name of its function."""
    KINDS[change.__name__] = change
    return change
