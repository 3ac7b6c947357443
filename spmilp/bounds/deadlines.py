"""Deadlines of several networks that no plan can keep: what is due by then takes longer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from spmilp.bounds.proof import Bound
from spmilp.bounds.roofline import roofline
from spmilp.frontend.graph import Network
from spmilp.frontend.join import join
from spmilp.machine.machine import Machine
from spmilp.problem.objective import Objective
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem, Slice
from spmilp.problem.several import Member, due_together, members_of, owners
from spmilp.units import Cycles, SliceIdx


def impossible_with_any_tiles(
    network: Network, machine: Machine, *, streams: bool
) -> Iterator[str]:
    """Say which deadlines no plan of any tiling keeps.

    All inferences that are due begin with the period, and their arithmetic and traffic lie between
    that and the deadline. Of a stream, constants that have room may be there before.
    """

    def least(due: Sequence[int]) -> tuple[Cycles, str]:
        found = roofline(join([network.parts[number] for number in due]), machine)
        return (found.period if streams else found.cycles), "with any tiles"

    return _impossible([part.member for part in network.parts], least)


def impossible_with_these_tiles(
    problem: Problem, bound_of: Callable[[Problem], Bound], *, streams: bool
) -> Iterator[str]:
    """Say which deadlines no plan of a problem keeps, by a bound on makespans.

    What is due by then is a problem of its own, whose makespan is at most the deadline: a stream's
    inferences have their cores, links and memories to themselves in it, and all constants for
    nothing.
    """

    def least(due: Sequence[int]) -> tuple[Cycles, str]:
        bound = bound_of(_part(problem, frozenset(due), with_constants=not streams))
        return bound.value, f"with these tiles ({bound.name})"

    return _impossible(members_of(problem), least)


def _impossible(
    members: Sequence[Member], least: Callable[[Sequence[int]], tuple[Cycles, str]]
) -> Iterator[str]:
    """Say which deadlines are below what is proven; of several at once, if none is by itself."""
    alone = set[int]()
    for deadline, due in due_together(members):
        if not alone.isdisjoint(due):
            continue
        cycles, how = least(due)
        if cycles <= deadline:
            continue
        some = ", ".join(f"{members[n].name}={members[n].deadline}" for n in due)
        if len(due) == 1:
            alone |= set(due)
            said = f"deadline {some} is impossible: it takes"
        else:
            said = f"deadlines {some} cannot all be kept: together they take"
        more = "allow more, or fewer inferences in a period"
        yield f"{said} at least {cycles:,} cycles {how}, more than {deadline:,}; {more}"


def _part(problem: Problem, members: frozenset[int], *, with_constants: bool) -> Problem:
    """Return the problem of some networks' tasks, perhaps without the constants that they read."""
    of_tasks, of_buffers = owners(problem)
    buffers = [
        each
        for each, owner in zip(problem.buffers, of_buffers, strict=True)
        if owner in members and (with_constants or not each.is_constant)
    ]
    number_of = {each.index: number for number, each in enumerate(buffers)}
    slices, slice_of = list[Slice](), dict[SliceIdx, SliceIdx]()
    for each in problem.slices:
        if each.buffer in number_of:
            slice_of[each.index] = len(slices)
            slices.append(replace(each, index=len(slices), buffer=number_of[each.buffer]))
    some = [task for task, owner in zip(problem.tasks, of_tasks, strict=True) if owner in members]
    task_of = {task.index: number for number, task in enumerate(some)}
    tasks = [
        replace(
            task,
            index=number,
            reads=tuple(slice_of[one] for one in task.reads if one in slice_of),
            writes=tuple(number_of[one] for one in task.writes),
            in_place=tuple(
                (slice_of[old], number_of[new]) for old, new in task.in_place if old in slice_of
            ),
            after=tuple(task_of[one] for one in task.after if one in task_of),
        )
        for number, task in enumerate(some)
    ]
    return replace(
        problem,
        buffers=tuple(replace(each, index=number) for number, each in enumerate(buffers)),
        slices=tuple(slices),
        tasks=tuple(tasks),
        objective=Objective(),
        pins=NO_PINS,
    )
