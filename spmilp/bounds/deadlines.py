"""Deadlines of several networks that no plan can keep: what is due by then takes longer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spmilp.bounds.best import best_bound
from spmilp.bounds.roofline import roofline
from spmilp.frontend.graph import Network
from spmilp.frontend.join import join
from spmilp.machine.machine import Machine
from spmilp.problem.objective import Objective
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem, Slice
from spmilp.problem.several import Member, by_deadline, members_of, owners
from spmilp.units import Cycles, SliceIdx


def impossible_with_any_tiles(
    network: Network, machine: Machine, *, streams: bool
) -> Iterator[str]:
    """Say which deadlines no plan of any tiling keeps.

    All inferences that are due begin with the period, and their arithmetic and traffic lie between
    that and the deadline. Of a stream, constants that have room may be there before.
    """
    members = [part.member for part in network.parts]
    for deadline, due in by_deadline(members):
        found = roofline(join([network.parts[number] for number in due]), machine)
        least = found.period if streams else found.cycles
        if least > deadline:
            yield _said([members[number] for number in due], deadline, least, "with any tiles")


def impossible_with_these_tiles(problem: Problem, *, streams: bool) -> Iterator[str]:
    """Say which deadlines no plan of a problem keeps.

    What is due by then is a problem of its own, whose makespan is at most the deadline: a stream's
    inferences have their cores, links and memories to themselves in it, and all constants for
    nothing.
    """
    members = members_of(problem)
    for deadline, due in by_deadline(members):
        bound = best_bound(_part(problem, frozenset(due), with_constants=not streams))
        if bound.value > deadline:
            some = [members[number] for number in due]
            yield _said(some, deadline, bound.value, f"with these tiles ({bound.name})")


def _said(due: Sequence[Member], deadline: Cycles, least: Cycles, how: str) -> str:
    names = " and ".join(one.name for one in due)
    last = next(one.name for one in due if one.deadline == deadline)
    return (
        f"deadline {last}={deadline} is impossible: {names}, due by then, take at least {least:,} "
        f"cycles {how}, more than {deadline:,}; allow more, or fewer inferences at once"
    )


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
