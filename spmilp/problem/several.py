"""Several networks in one problem: how often each runs in a period, and by when it is to end."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spmilp.cached import cached
from spmilp.problem.problem import Problem
from spmilp.units import Count, Cycles

_SAID = re.compile(r"network (.+) rate (\d+) deadline (\d+|none)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of several networks in a problem.

    Parameters
    ----------
    rate
        Its inferences in each period. Their inputs are all there when the period begins.
    deadline
        Cycles from there in which all of them are to end; ``None`` for any.
    """

    name: str
    rate: Count = 1
    deadline: Cycles | None = None

    @property
    def inferences(self) -> tuple[str, ...]:
        """What the names of tensors and groups of each of its inferences begin with."""
        if self.rate == 1:
            return (f"{self.name}/",)
        return tuple(f"{self.name}@{number}/" for number in range(self.rate))

    @property
    def constants(self) -> str:
        """What the names of its constants, which all of its inferences share, begin with."""
        return f"{self.name}/"

    @property
    def said(self) -> str:
        """What a problem says of it among its sources."""
        deadline = "none" if self.deadline is None else self.deadline
        return f"network {self.name} rate {self.rate} deadline {deadline}"


@cached
def members_of(problem: Problem) -> tuple[Member, ...]:
    """Return the networks that are together in a problem; none if it is of one."""
    found = filter(None, (_SAID.fullmatch(what) for what, _ in problem.sources))
    return tuple(
        Member(
            name=each[1], rate=int(each[2]), deadline=None if each[3] == "none" else int(each[3])
        )
        for each in found
    )


@cached
def owners(problem: Problem) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Return of each task, and of each buffer, the number of its network."""
    number_of = {
        begin: number
        for number, member in enumerate(members_of(problem))
        for begin in (member.constants, *member.inferences)
    }

    def owner(named: str) -> int | None:
        return number_of.get(named[: named.find("/") + 1])

    tasks, buffers = (
        tuple(None if one.tile is None else owner(one.tile.of) for one in rows)
        for rows in (problem.tasks, problem.buffers)
    )
    return tasks, buffers


def due_together(members: Iterable[Member]) -> Iterator[tuple[Cycles, list[int]]]:
    """Yield each deadline with the number of the network that has it; then with all due by then."""
    due = {n: one.deadline for n, one in enumerate(members) if one.deadline is not None}
    yield from ((deadline, [number]) for number, deadline in due.items())
    for deadline in sorted(set(due.values())):
        some = [number for number, own in due.items() if own <= deadline]
        if len(some) > 1:
            yield deadline, some
