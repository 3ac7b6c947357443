"""Problems made infeasible in known ways: the true cause is named, and what helps does help."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import spmilp
from analysis.slowed import Made, independent_tasks
from checker.worked_example import PROBLEM
from spmilp.explanation.cause import Cause
from spmilp.explanation.misfit import misfit_of
from spmilp.machine.machine import ByteRange, CoreKind, Machine, Memory
from spmilp.problem.problem import Problem, whole_slice
from spmilp.report.explanation import Explanation


def changed(problem: Problem, change: Callable[[Machine], Machine]) -> Problem:
    return replace(problem, machine=change(problem.machine))


def engines_with(**fields: Any) -> Callable[[Machine], Machine]:
    return lambda machine: replace(
        machine, engines=tuple(replace(each, **fields) for each in machine.engines)
    )


def memories_with(name: str, **fields: Any) -> Callable[[Machine], Machine]:
    def change(memory: Memory) -> Memory:
        return replace(memory, **fields) if memory.name.startswith(name) else memory

    return lambda machine: replace(machine, memories=tuple(map(change, machine.memories)))


def tasks(**made: Any) -> Problem:
    return independent_tasks(Made(**made), cycles=100, read=2500, tasks=3)


def operands_too_large() -> Problem:
    return tasks(spm=1024)


def too_much_is_reserved() -> Problem:
    return tasks(reserved=(14384, 14384))


def scratch_too_large() -> Problem:
    problem = tasks()
    first, *others = problem.tasks
    return replace(problem, tasks=(replace(first, scratch=20_000), *others))


def reserved_ranges_leave_no_piece() -> Problem:
    return changed(tasks(spm=4096), memories_with("spm", reserved=(ByteRange(2000, 2100),)))


def dram_too_small() -> Problem:
    return changed(tasks(), memories_with("dram", size=7000))


def no_core_of_the_kind() -> Problem:
    problem = tasks()
    kinds = (*problem.machine.kinds, CoreKind(index=1, name="special"))
    special = [replace(task, cycles=(100, None)) for task in problem.tasks]
    special[1] = replace(special[1], cycles=(None, 50))
    machine = replace(problem.machine, kinds=kinds)
    return replace(problem, machine=machine, tasks=tuple(special))


def engines_do_not_load() -> Problem:
    return changed(tasks(), engines_with(loads=False))


def engines_do_not_reach_the_dram() -> Problem:
    return changed(tasks(), engines_with(reaches=(1, 2)))


def transfers_too_short() -> Problem:
    return changed(tasks(), engines_with(longest=1000))


def no_link_from_the_dram() -> Problem:
    def without(machine: Machine) -> Machine:
        links = [link for link in machine.links if link.source != "dram"]
        return replace(
            machine, links=tuple(replace(link, index=at) for at, link in enumerate(links))
        )

    return changed(tasks(), without)


def weights_too_large_for_where_they_stay() -> Problem:
    builder = spmilp.ProblemBuilder(Made(spm=4096).machine(), name="resident")
    parts = [builder.weight(f"w{part}", (3000,), memory="spm0") for part in range(2)]
    for number, part in enumerate(parts):
        y = builder.task(f"t{number}", reads=part, writes=(f"y{number}", 16, "int8"), cycles=5)
        builder.output(y)
    return builder.build()


def engines_do_not_store() -> Problem:
    return changed(tasks(), engines_with(stores=False))


def no_link_back_to_the_dram() -> Problem:
    def without(machine: Machine) -> Machine:
        links = [link for link in machine.links if link.target != "dram"]
        return replace(
            machine, links=tuple(replace(link, index=at) for at, link in enumerate(links))
        )

    return changed(tasks(), without)


def alignment_pads_too_much() -> Problem:
    return changed(tasks(spm=3000), memories_with("spm", alignment=1024))


def the_core_of_its_kind_has_the_small_memory() -> Problem:
    problem = changed(tasks(), memories_with("spm1", size=2000))
    kinds = (*problem.machine.kinds, CoreKind(index=1, name="special"))
    cores = (problem.machine.cores[0], replace(problem.machine.cores[1], kind=1))
    special = [replace(task, cycles=(100, None)) for task in problem.tasks]
    special[1] = replace(special[1], cycles=(None, 50))
    machine = replace(problem.machine, kinds=kinds, cores=cores)
    return replace(problem, machine=machine, tasks=tuple(special))


def results_that_stay_are_too_large() -> Problem:
    return with_results_that_stay(size=1500, spm=4096)


def results_that_stay_leave_no_room() -> Problem:
    return with_results_that_stay(size=1200, spm=4096, read=1000)


def with_results_that_stay(*, size: int, spm: int, read: int = 16) -> Problem:
    """Three results that have to lie in the first scratchpad at the end."""
    problem = independent_tasks(Made(spm=spm), cycles=100, read=read, tasks=3)
    names = {f"y{number}" for number in range(3)}
    buffers = tuple(
        replace(each, shape=(size,), ends_in=1) if each.name in names else each
        for each in problem.buffers
    )
    whole = {each.index: whole_slice(each) for each in buffers}
    slices = tuple(whole.get(each.index, each) for each in problem.slices)
    only_first = CoreKind(index=1, name="second")
    machine = problem.machine
    cores = (machine.cores[0], replace(machine.cores[1], kind=1))
    every = tuple(replace(task, cycles=(100, None)) for task in problem.tasks)
    machine = replace(machine, kinds=(*machine.kinds, only_first), cores=cores)
    last = replace(every[-1], reads=every[-1].reads[:1])
    return replace(
        problem, buffers=buffers, slices=slices, machine=machine, tasks=(*every[:-1], last)
    )


def nothing_can_be_spilled_to_the_dram() -> Problem:
    """Four results wait for each other, and each scratchpad holds one of them."""
    builder = spmilp.ProblemBuilder(Made(spm=6100).machine(), name="spilled")
    made = []
    for number in range(4):
        x = builder.input(f"x{number}", (16,))
        writes = ((f"y{number}", (3500,), "int8"), (f"done{number}", 8, "int8"))
        made.append(builder.task(f"t{number}", reads=x, writes=writes, cycles=50))
    done = [each for _, each in made]
    gate = builder.task("gate", reads=done, writes=("gate", 8, "int8"), cycles=5)
    for number, (y, _) in enumerate(made):
        z = (f"z{number}", 8, "int8")
        builder.output(builder.task(f"u{number}", reads=(y, gate), writes=z, cycles=5))
    return changed(builder.build(), memories_with("dram", size=200))


def what_is_there_at_the_start_leaves_gaps() -> Problem:
    problem = weights_too_large_for_where_they_stay()
    return changed(problem, memories_with("spm0", size=6200, reserved=(ByteRange(3100, 3300),)))


CASES: list[tuple[Callable[[], Problem], Cause, str, int, int]] = [
    # what, cause, memory, bytes required, bytes usable
    (operands_too_large, Cause.TASK, "spm0", 2516, 1024),
    (too_much_is_reserved, Cause.TASK, "spm0", 2516, 2000),
    (scratch_too_large, Cause.TASK, "spm0", 22516, 16384),
    (alignment_pads_too_much, Cause.TASK, "spm0", 3088, 3000),
    (the_core_of_its_kind_has_the_small_memory, Cause.TASK, "spm1", 2516, 2000),
    (reserved_ranges_leave_no_piece, Cause.PIECES, "spm0", 2516, 3996),
    (dram_too_small, Cause.DRAM, "dram", 7516, 7000),
    (no_core_of_the_kind, Cause.CORE, "", 0, 0),
    (engines_do_not_load, Cause.ROUTE, "", 0, 0),
    (engines_do_not_store, Cause.ROUTE, "", 0, 0),
    (engines_do_not_reach_the_dram, Cause.ROUTE, "", 0, 0),
    (transfers_too_short, Cause.ROUTE, "", 0, 0),
    (no_link_from_the_dram, Cause.ROUTE, "", 0, 0),
    (no_link_back_to_the_dram, Cause.ROUTE, "", 0, 0),
    (weights_too_large_for_where_they_stay, Cause.START, "spm0", 6000, 4096),
    (results_that_stay_are_too_large, Cause.START, "spm0", 4500, 4096),
]

UNPROVEN: list[tuple[Callable[[], Problem], Cause, str, str, int, int]] = [
    # what, cause, what is named, memory, bytes required, bytes usable
    (results_that_stay_leave_no_room, Cause.ROOM, "task t2, cycle", "spm0", 4600, 4096),
    (what_is_there_at_the_start_leaves_gaps, Cause.ROOM, "cycle 0", "spm0", 6000, 6000),
    (nothing_can_be_spilled_to_the_dram, Cause.ROOM, "what is spilled", "dram", 3596, 200),
]


def names(case: tuple[Any, ...]) -> str:
    return case[0].__name__


@pytest.mark.parametrize("case", CASES, ids=names)
def test_the_true_cause_is_named_with_both_numbers_and_something_helps(case: Any) -> None:
    make, cause, memory, needed, usable = case
    said = spmilp.explain(make())
    assert said.data["status"] == "infeasible"
    assert said.data["cause"] == cause
    if memory:
        assert numbers(said) == (memory, needed, usable)
        assert f"{needed:,} B required at one time, at least" in said.text
        assert f"{usable:,} B usable in {memory}" in said.text
    assert remedies(said), said.text
    assert max(map(len, said.text.splitlines())) <= 80


@pytest.mark.parametrize("case", UNPROVEN, ids=names)
def test_what_the_scheduler_has_no_room_for_is_named_with_both_numbers_and_something_helps(
    case: Any,
) -> None:
    make, cause, what, memory, needed, usable = case
    said = spmilp.explain(make())
    assert said.data["status"] == "unknown"
    assert said.data["cause"] == cause
    assert str(said.data["what"]).startswith(what)
    assert numbers(said) == (memory, needed, usable)
    assert remedies(said), said.text
    assert max(map(len, said.text.splitlines())) <= 80


@pytest.mark.parametrize("case", [*CASES, *UNPROVEN], ids=names)
def test_solvers_find_no_plan_where_none_is_said_to_be(case: Any) -> None:
    result = spmilp.solve(case[0](), solver="list", time_limit=None)
    assert result.plan is None


def numbers(said: Explanation) -> tuple[object, ...]:
    return said.data["memory"], said.data["required"], said.data["usable"]


def remedies(said: Explanation) -> list[Any]:
    found = said.data["remedies"]
    assert isinstance(found, list)
    return found


def test_so_many_bytes_more_are_the_fewest() -> None:
    problem = operands_too_large()
    every, one = remedies(spmilp.explain(problem))
    assert (every["bytes"], every["least"]) == (1492, True)
    assert one["bytes"] == 1492
    for less, fits in ((0, True), (1, False)):
        size = 1024 + every["bytes"] - less
        grown = changed(problem, memories_with("spm", size=size))
        result = spmilp.solve(grown, solver="list", time_limit=None)
        assert (result.makespan == every["makespan"]) is fits


def test_fewer_reserved_bytes_help_as_well() -> None:
    said = spmilp.explain(too_much_is_reserved())
    assert (
        "516 B fewer reserved in each of 2 memories like spm0 (of 14,384 B)"
        in said.text.replace("\n    ", " ")
    )


def test_the_largest_buffers_that_must_stay_are_named_by_solve_as_well() -> None:
    said = spmilp.explain(results_that_stay_leave_no_room())
    largest = said.data["largest"]
    assert isinstance(largest, list)
    assert largest[0] == {"name": "y0, which must stay", "bytes": 1200}
    result = spmilp.solve(results_that_stay_leave_no_room(), solver="list")
    assert result.reason.startswith("task t2, cycle 450: 4600 B must be in spm0 at one time > 4096")


def test_scratch_is_named_among_the_largest() -> None:
    said = spmilp.explain(scratch_too_large())
    assert said.data["what"] == "task t0"
    largest = said.data["largest"]
    assert isinstance(largest, list)
    assert largest[0] == {"name": "scratch", "bytes": 20_000}


def test_the_task_with_the_most_bytes_too_many_is_named_by_solve_as_well() -> None:
    builder = spmilp.ProblemBuilder(Made(spm=1024, reserved=(24, 24)).machine())
    for number, size in enumerate((2000, 5000, 3000)):
        x = builder.input(f"x{number}", (size,))
        y = builder.task(f"t{number}", reads=x, writes=(f"y{number}", 16, "int8"), cycles=5)
        builder.output(y)
    result = spmilp.solve(builder.build(), solver="list")
    assert result.status == "infeasible"
    assert result.reason.startswith(
        "task t1 needs 5016 B > 1000 B usable in spm0 (24 B of it are reserved), 4016 B over"
    )


def test_two_results_in_place_of_two_operands_need_no_more_than_the_operands() -> None:
    builder = spmilp.ProblemBuilder(
        memories_with("spm", alignment=16, size=32)(Made().machine()), name="twice"
    )
    x, y = builder.input("x", (1,)), builder.input("y", (1,))
    written = (("a", 1, "int8"), ("b", 1, "int8"))
    made = builder.task("t", reads=(x, y), writes=written, cycles=5, in_place=((x, "a"), (y, "b")))
    for each in made:
        builder.output(each)
    problem = builder.build()
    assert misfit_of(problem) is None
    assert spmilp.solve(problem, solver="cpsat", time_limit="10s").plan is not None


def test_what_fits_is_explained_as_a_plan() -> None:
    assert misfit_of(PROBLEM) is None
    said = spmilp.explain(tasks())
    assert said.data["status"] == "slow"
