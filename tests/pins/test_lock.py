"""Addresses last from one plan to the next where they can; where not, the reason is named."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from spmilp.checker.check import check
from spmilp.errors import ArgumentError, FileError
from spmilp.machine.machine import Machine
from spmilp.pipeline import solve
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.pins import PinKind, Pins
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.result import Result
from spmilp.solvers import wanted_addresses
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.wanted_addresses import with_addresses
from tests.pins.pinned_problems import pinned_problem
from tests.solvers.chains import star


def release(sizes: dict[str, int], machine: Machine | None = None) -> Problem:
    """Return a problem of four chains on two cores; sizes in bytes of what is not 64 B."""
    b = ProblemBuilder(machine or star(2, 2048), name="release")
    w = b.weight("w", (sizes.get("w", 64),), "int8")
    for n in range(4):
        x = b.input(f"x{n}", (64,), "int8")
        y = b.task(
            f"a{n}", reads=[x, w], writes=(f"y{n}", (sizes.get(f"y{n}", 64),), "int8"), cycles=40
        )
        b.output(b.task(f"b{n}", reads=[y, w], writes=(f"z{n}", (64,), "int8"), cycles=40))
    return b.build()


def first() -> Result:
    """Return the plan of a first release, whose addresses no solver would give by itself."""
    found = solve(release({}), solver="list", time_limit=None)
    assert found.plan is not None
    shift = {one.index: 1024 + one.offset for one in found.plan.residencies}
    spm = {m.index for m in found.problem.machine.memories if m.size == 2048}
    residencies = tuple(
        replace(one, offset=shift[one.index]) if one.memory in spm else one
        for one in found.plan.residencies
    )
    peak = replace(found.plan.claim, peak_spm=found.plan.claim.peak_spm + 1024)
    plan = replace(found.plan, residencies=residencies, claim=peak)
    assert check(found.problem, plan) == ()
    return replace(found, answer=replace(found.answer, plan=plan))


def addresses(result: Result) -> dict[tuple[str, int], set[int]]:
    """Return the addresses of each buffer in each memory."""
    assert result.plan is not None
    found: dict[tuple[str, int], set[int]] = {}
    for one in result.plan.residencies:
        assert one.slice is not None
        name = result.problem.buffers[result.problem.slices[one.slice].buffer].name
        found.setdefault((name, one.memory), set()).add(one.offset)
    return found


def test_a_plan_of_another_solver_has_the_addresses_of_the_earlier_one() -> None:
    before = first()
    other = "greedy:round_robin/depth_first"
    free = solve(release({}), solver=other)
    after = solve(release({}), solver=other, lock=before)
    assert addresses(free) != addresses(before)
    assert addresses(after) == addresses(before)
    assert after.lock is not None
    assert not after.lock.moved
    assert after.lock.unlocked is not None
    assert after.lock.unlocked.makespan == free.makespan
    assert next(iter(after.lock.lines())).startswith(
        f"lock: {after.lock.kept} of {after.lock.kept}"
    )


def test_what_has_another_size_moves_alone() -> None:
    before = first()
    after = solve(release({"y1": 128}), solver="list", time_limit=None, lock=before)
    assert after.lock is not None
    assert {(one.name, one.why) for one in after.lock.moved} == {("y1", "its size is another")}
    was, now = addresses(before), addresses(after)
    assert {key: now[key] for key in was if key[0] != "y1"} == {
        key: was[key] for key in was if key[0] != "y1"
    }


def test_what_is_gone_or_has_no_room_is_named() -> None:
    smaller = star(2, 1024 + 64)
    after = solve(release({}, smaller), solver="list", time_limit=None, lock=first())
    assert after.plan is not None
    assert after.lock is not None
    reasons = {one.why for one in after.lock.moved}
    assert any("which has 1088 B" in reason for reason in reasons), reasons
    assert after.lock.kept > 0


def test_only_what_is_named_is_locked() -> None:
    before = first()
    after = solve(release({}), solver="list", time_limit=None, lock=before, lock_buffers="y*")
    was, now = addresses(before), addresses(after)
    on_chip = [key for key in was if key[0][0] in "xz" and min(was[key]) >= 1024]
    assert on_chip
    assert not any(was[key] == now.get(key) for key in on_chip)
    assert after.lock is not None
    assert after.lock.kept == sum(key[0][0] == "y" for key in was)


def test_a_lock_costs_no_more_than_it_may() -> None:
    before = solve(release({}), pins={"forbid_cores": "core1"}, solver="list", time_limit=None)
    dear = solve(release({}), solver="list", time_limit=None, lock=before)
    cheap = solve(release({}), solver="list", time_limit=None, lock=before, lock_cost="0%")
    assert dear.lock is not None
    assert cheap.lock is not None
    assert dear.lock.unlocked == cheap.lock.unlocked
    assert cheap.makespan == cheap.lock.measures.makespan == dear.lock.unlocked.makespan
    assert dear.makespan == before.makespan
    assert dear.lock.kept > cheap.lock.kept
    assert "it does not lie in that memory now" in {one.why for one in cheap.lock.moved}


def test_wrong_locks_are_refused() -> None:
    before = first()
    with pytest.raises(ArgumentError, match="has no buffer or tensor nothing"):
        solve(release({}), lock=before, lock_buffers=["y0", "nothing"])
    with pytest.raises(ArgumentError, match="there is no lock"):
        solve(release({}), lock_buffers="y0")
    assert before.plan is not None
    torn = replace(before.plan, placements=before.plan.placements[:-1])
    broken = replace(before, answer=replace(before.answer, plan=torn))
    with pytest.raises(FileError, match="the checker rejects"):
        solve(release({}), lock=broken)


@pytest.mark.parametrize("tries", [1, 1000])
def test_any_wanted_addresses_leave_a_valid_plan(
    tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted_addresses, "MOST_TRIES", tries)
    reasons: Counter[str] = Counter()
    for number in range(30):
        problem = replace(pinned_problem(number, {PinKind.CORES}, most_tasks=8), pins=Pins())
        found = find_solver("list").solve(problem, SolveOptions())
        if found.plan is None:
            continue
        random, wanted = Random(number), {}
        for one in found.plan.residencies:
            memory = problem.machine.memories[one.memory]
            if random.random() < 0.4 and memory.size is not None:
                highest = memory.size - one.bytes + 1
                wanted[("residency", one.index)] = random.randrange(0, highest, memory.alignment)
        kept = with_addresses(problem, found.plan, wanted)
        assert check(problem, kept.plan) == ()
        for thing, address in wanted.items():
            has_it = kept.plan.residencies[thing[1]].offset == address
            assert has_it != (thing in kept.why_not)
            reasons[kept.why_not.get(thing, "kept").partition(" ")[0]] += 1
    assert {"kept", "something", "the"} <= set(reasons), reasons
