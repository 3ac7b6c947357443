"""One plan for each way to break a rule of the worked example, and for what breaks none.

What the checker says of each stands in ``rules.txt``; ``python -m tests.checker.test_rules`` writes
it anew.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from spmilp.checker.check import LISTED, check
from spmilp.machine.machine import RemoteReads
from spmilp.plan.plan import Claim, Plan, Residency
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Place, Problem
from tests.checker.worked_example import (
    CORE_DMA,
    DRAM,
    DRAM_DMA,
    L2,
    L2_DMA,
    MACHINE,
    PLAN,
    PROBLEM,
    SPM0,
    SPM1,
    X0,
    X0_LEFT,
    X1,
    X1_TOP,
    Y0,
    A,
    C,
    broken,
    changed,
    with_engine,
    with_machine,
    with_task,
)

SAID = Path(__file__).with_name("rules.txt")


def placed(task: int, /, **fields: Any) -> Plan:
    return changed(placements={task: fields})


def kept(residency: int, /, **fields: Any) -> Plan:
    return changed(residencies={residency: fields})


def moved(transfer: int, /, **fields: Any) -> Plan:
    return changed(transfers={transfer: fields})


def claimed(**numbers: int) -> Plan:
    return replace(PLAN, claim=replace(PLAN.claim, **numbers))


def more(*residencies: Residency) -> Plan:
    return replace(PLAN, residencies=(*PLAN.residencies, *residencies))


def there(slice_: int | None, memory: int, offset: int, size: int, start: int, end: int) -> Plan:
    """Return the plan with one more residency."""
    return more(
        Residency(
            index=23, slice=slice_, memory=memory, offset=offset, bytes=size, start=start, end=end
        )
    )


def with_memory(memory: int, **fields: Any) -> Problem:
    memories = list(MACHINE.memories)
    memories[memory] = replace(memories[memory], **fields)
    return with_machine(memories=tuple(memories))


def with_link(link: int, **fields: Any) -> Problem:
    links = list(MACHINE.links)
    links[link] = replace(links[link], **fields)
    return with_machine(links=tuple(links))


def with_place(buffer: int, place: Place) -> Problem:
    buffers = list(PROBLEM.buffers)
    buffers[buffer] = replace(buffers[buffer], place=place)
    return replace(PROBLEM, buffers=tuple(buffers))


def with_part(of: int, problem: Problem = PROBLEM, **fields: Any) -> Problem:
    """Return the problem with one more slice, like another one."""
    part = replace(problem.slices[of], index=10, **fields)
    return replace(problem, slices=(*problem.slices, part))


def remote(numerator: int, denominator: int, longest: int) -> Problem:
    cost = Fraction(numerator, denominator)
    return with_machine(remote=RemoteReads(cycles_per_byte_hop=cost, longest_route=longest))


HALF = replace(PROBLEM.slices[A], index=10, extent=(2, 8), bytes=16)
"""The upper half of the buffer ``a``, as a slice."""


def weight_comes_back() -> Plan:
    """The weight is copied back to where it was at cycle 0."""
    move = replace(PLAN.transfers[12], index=13, source=22, destinations=(23,), route=(7, 4))
    weight = replace(PLAN.residencies[7], index=23, start=120, end=150, filled_by_transfer=13)
    return replace(
        more(weight),
        transfers=(*PLAN.transfers, replace(move, start=120, sent=137, end=139)),
        claim=replace(PLAN.claim, energy=PLAN.claim.energy + 64 * 4),
    )


def second_load(start: int) -> tuple[Plan, Problem]:
    """Return the plan in which x1 is loaded from some cycle on, on a channel of its own."""
    plan = changed(
        transfers={2: {"start": start, "sent": start + 6, "end": start + 10, "channel": 1}},
        residencies={5: {"start": start}},
    )
    return plan, with_engine(DRAM_DMA, channels=2)


def nothing() -> tuple[Plan, Problem]:
    claim = Claim(makespan=0, dram_traffic=0, energy=0, peak_spm=0, bound=0, bound_source="nothing")
    problem = replace(PROBLEM, tensors=(), buffers=(), slices=(), tasks=())
    return Plan(placements=(), claim=claim, solver="none"), problem


VALID: dict[str, Plan | tuple[Plan, Problem]] = {
    "the worked example": PLAN,
    "a plan of no tasks": nothing(),
    "the bound may be the makespan": claimed(bound=196),
    "room may be kept before and after the task": changed(
        residencies={12: {"start": 40, "end": 100}, 22: {"start": 40}}
    ),
    "a weight may come back to where it was at cycle 0": weight_comes_back(),
    "a slice of what lies in DRAM may be there at cycle 0": there(X0_LEFT, DRAM, 0, 32, 0, 9),
    "exact thirds fill a link": (PLAN, with_link(2, rate=Fraction(4, 3) * 3)),
    "a transfer sets up while another one is on the link": second_load(8),
    "a spill may end where a tensor begins": replace(
        changed(residencies={18: {"offset": 256}, 21: {"offset": 264}}), tensors=(0, 256)
    ),
    "what is written may lie where something was before": (
        kept(18, offset=0),
        with_place(Y0, Place(0, (0, 0))),
    ),
}

BROKEN: dict[str, Plan | tuple[Plan, Problem]] = {
    # Claims
    **{
        f"{quantity} is stated {step:+}": claimed(**{quantity: value + step})
        for quantity, value in (
            *(("makespan", 196), ("dram_traffic", 288), ("energy", 38248), ("peak_spm", 320)),
        )
        for step in (-1, 1)
    },
    "the bound is not above the objective": claimed(bound=197),
    "the bound is one of the problem's objective": (
        claimed(bound=289),
        replace(PROBLEM, objective=Objective.of(Quantity.DRAM_TRAFFIC)),
    ),
    # Tasks
    "a task runs only on a kind of core that can": (PLAN, with_task(3, cycles=(8, None))),
    "two tasks inside a third one's run both collide with it": changed(
        placements={
            2: {"core": 1, "start": 40, "end": 100},
            3: {"core": 1, "start": 50, "end": 60},
            4: {"core": 1, "start": 70, "end": 80},
        }
    ),
    "a slice is not served by another slice of its parent": changed(
        residencies={6: {"slice": 1}}, placements={3: {"reads": (3, 3)}}
    ),
    "an operand is not served by scratch": placed(0, reads=(7, 9)),
    "an operand stays until the task ends": changed(residencies={2: {"end": 60}, 1: {"end": 70}}),
    "an operand lies in the core's own memory": (PLAN, with_machine(remote=None)),
    "a remote operand lies in a scratchpad": changed(
        placements={4: {"reads": (15, 22)}}, residencies={15: {"end": 181}}
    ),
    "a remote operand lies within the longest route": (PLAN, remote(1, 8, 1)),
    "a remote operand needs a route": (PLAN, with_link(5, target="elsewhere")),
    "a written buffer has a residency of it": kept(19, slice=X1_TOP),
    "a written buffer lies in the core's memory": kept(12, memory=L2, offset=128, end=59),
    "a written buffer has room until the task ends": kept(19, end=166),
    "a task has its scratch": placed(0, scratch=None),
    "scratch is large enough": kept(9, bytes=31),
    "scratch lies in the core's memory": kept(9, memory=SPM1, offset=320),
    "scratch lasts from the task's start to its end": kept(9, start=50, end=68),
    "scratch holds no slice": placed(0, scratch=2),
    "scratch belongs to one task": (
        changed(placements={1: {"scratch": 9}}, residencies={9: {"end": 79}}),
        with_task(1, scratch=8),
    ),
    "a task without scratch has none": (PLAN, with_task(0, scratch=0)),
    # What fills a residency
    "a residency is filled by the task that writes it": kept(8, filled_by_task=3),
    "a residency is filled by the transfer that goes there": kept(5, filled_by_transfer=0),
    "a destination exists when its transfer starts": kept(5, start=15),
    "only what is there at cycle 0 needs no filling": kept(8, filled_by_task=None),
    "a buffer is at cycle 0 where the problem says": kept(22, filled_by_transfer=None, start=0),
    "a scratchpad holds whole buffers at cycle 0": (
        there(10, SPM0, 256, 16, 0, 9),
        with_part(A, buffer=2, start=(8,), extent=(16,), bytes=16),
    ),
    "a scratchpad holds a buffer once at cycle 0": there(2, SPM0, 256, 64, 0, 9),
    # Ends
    "a value lost before its transfer is reported as such": kept(11, end=110),
    "an output is valid in its memory at the end": kept(18, end=195),
    "an output that was never stored is reported": kept(21, memory=L2, offset=224, slice=X0),
    # Addresses
    "a residency ends inside its memory": (PLAN, with_memory(SPM0, size=240)),
    "a residency stays out of reserved bytes": kept(2, offset=48),
    "a residency is aligned": kept(17, offset=24),
    "a spill is aligned too": kept(14, offset=200),
    "a tensor is aligned": replace(
        changed(residencies={18: {"offset": 160}, 21: {"offset": 168}, 14: {"offset": 256}}),
        tensors=(0, 160),
    ),
    "a tensor is inside its memory": (PLAN, with_memory(DRAM, size=191)),
    "residencies alive together share no bytes": kept(2, offset=80),
    "those that only touch in time or bytes share none": there(None, SPM0, 64, 64, 69, 70),
    "a residency lies at its place in the tensor": kept(21, offset=144),
    "a slice lies at its own place in the tensor": there(X1_TOP, DRAM, 0, 32, 0, 9),
    "tensors share no bytes": replace(
        changed(residencies={18: {"offset": 64}, 21: {"offset": 72}}), tensors=(0, 64)
    ),
    "a spill keeps out of tensors at all times": kept(14, offset=128),
    "two written buffers do not share elements of a tensor": (
        kept(18, offset=132),
        with_place(Y0, Place(1, (0, 4))),
    ),
    "what is written does not share elements with what was there": (
        changed(residencies={18: {"offset": 0}, 0: {"end": 123}}),
        with_place(Y0, Place(0, (0, 0))),
    ),
    # In place
    "in place means at the same offset": changed(
        residencies={10: {"offset": 208}, 9: {"offset": 256}}
    ),
    "only the residency that the task reads is replaced in place": more(
        replace(PLAN.residencies[8], index=23, start=79, end=90)
    ),
    "in place begins when the task starts": kept(10, start=68),
    "in place ends with the task": kept(8, end=80),
    "in place forbids that another task reads the old value": (
        placed(2, start=60, end=78, reads=(3, 8)),
        with_task(2, reads=(X0, A)),
    ),
    "in place forbids that a transfer reads the old value": moved(
        12, source=8, slice=A, start=61, sent=70, end=72
    ),
    "but not that its bytes arrive later": moved(12, source=8, slice=A, start=60, sent=69, end=71),
    "also one that has the number of the task": moved(
        1, source=8, slice=A, start=60, sent=70, end=71
    ),
    "in place forbids that the task reads another slice there": (
        placed(1, reads=(8, 8)),
        with_task(1, (HALF,), reads=(A, 10)),
    ),
    "in place of a parent that serves a slice is not permitted": (
        PLAN,
        with_task(1, (HALF,), reads=(10,), in_place=((10, 4),)),
    ),
    # Transfers
    "scratch is no source": moved(12, source=9),
    "the source stays until all is sent": changed(residencies={1: {"end": 46}, 0: {"end": 49}}),
    "a source that ends while a copy lives is no lost value": changed(
        residencies={13: {"end": 100}, 12: {"end": 109}}
    ),
    "the destination exists until the transfer ends": kept(22, end=67),
    "two destinations lie in different memories": kept(2, memory=SPM1, offset=320),
    "an engine that does not store stores not": (PLAN, with_engine(CORE_DMA, stores=False)),
    "a transfer takes the machine's route": moved(12, route=(6, 5)),
    "a multicast takes each link once": moved(1, route=(2, 4, 2, 6)),
    "a transfer needs a route": (PLAN, with_link(0, target="elsewhere")),
    "only an engine that can multicast has several destinations": (
        PLAN,
        with_engine(L2_DMA, multicast=False),
    ),
    "a transfer sends as long as the machine says": moved(12, sent=67),
    "a transfer is no longer than its engine can": (PLAN, with_engine(CORE_DMA, longest=63)),
    "a copy has no more nested strides than a descriptor": (
        PLAN,
        with_engine(DRAM_DMA, dimensions=1),
    ),
    "a slice of its parent's residency is copied with strides": (
        changed(transfers={3: {"slice": 8, "source": 1}}, residencies={6: {"slice": 8}}),
        with_engine(L2_DMA, dimensions=1),
    ),
    "congruent addresses need not be multiples": (
        changed(residencies={7: {"offset": 400}, 22: {"offset": 272}}),
        with_engine(CORE_DMA, congruence=64),
    ),
    "addresses that differ by an odd number are not congruent modulo 2": (
        kept(22, offset=257),
        with_engine(CORE_DMA, congruence=2, dimensions=None),
    ),
    "a transfer of what its source does not hold has no addresses": moved(12, source=8),
    "limits hold behind a destination of another slice": (
        changed(residencies={2: {"slice": X1}, 3: {"offset": 80}}),
        with_engine(L2_DMA, congruence=64),
    ),
    "a destination of another buffer has no limits": kept(22, slice=X0),
    "a destination of another slice has no limits": kept(22, slice=X1_TOP),
    "congruence counts from the slice's first byte": (
        changed(transfers={3: {"slice": 10, "source": 1}}, residencies={6: {"slice": 10}}),
        with_part(X0_LEFT, with_engine(L2_DMA, congruence=64), start=(0, 8)),
    ),
    "a slice lies in its parent's residency behind what comes before it": (
        changed(transfers={4: {"slice": 10}}, residencies={12: {"offset": 240}, 13: {"slice": 10}}),
        with_part(C, with_engine(L2_DMA, congruence=512), start=(3, 0), extent=(1, 16), bytes=16),
    ),
    **{f"channel {n} is none of its engine": moved(12, channel=n) for n in (-1, 1, 2, 7)},
    "a channel that is not pipelined is taken until all has arrived": (
        PLAN,
        with_engine(DRAM_DMA, pipelined=False),
    ),
    "a link carries no more than its rate": (PLAN, with_link(2, rate=Fraction(7, 2))),
    "a link carries a transfer until all is sent": second_load(7),
}

LOST: tuple[Plan, ...] = (
    replace(PLAN, placements=PLAN.placements[:4]),
    replace(PLAN, placements=(*PLAN.placements, PLAN.placements[0])),
    replace(
        PLAN, placements=(*PLAN.placements, *(replace(PLAN.placements[0], task=n) for n in (5, 6)))
    ),
    replace(PLAN, residencies=PLAN.residencies[:21], transfers=PLAN.transfers[:11]),
    *(placed(n, task=1 - n) for n in (0, 1)),
    *(placed(1, core=core) for core in (-1, 3, 4)),
    *(placed(1, end=end) for end in (60, 69)),
    placed(1, start=-1),
    *(placed(1, reads=reads) for reads in ((), (8, 8), (23,))),
    *(placed(1, writes=writes) for writes in ((), (10, 11))),
    placed(1, scratch=23),
    *(kept(4, index=index) for index in (3, 5)),
    *(kept(4, slice=slice_) for slice_ in (-1, 10)),
    kept(4, memory=4),
    *(kept(4, offset=offset) for offset in (-1, -64)),
    *(kept(4, bytes=size) for size in (-1, 0)),
    kept(4, end=0),
    kept(4, filled_by_task=5),
    kept(4, filled_by_transfer=13),
    kept(5, filled_by_task=0),
    *(moved(2, index=index) for index in (1, 3)),
    moved(2, slice=-1),
    moved(2, source=99),
    *(moved(2, destinations=ends) for ends in ((), (5, -2))),
    moved(2, engine=3),
    *(moved(2, route=route) for route in ((0, -1), (8,))),
    *(moved(2, sent=sent) for sent in (10, 21)),
    *(replace(PLAN, tensors=tensors) for tensors in ((0,), (0, -1), (0, -128), (0, 128, 256))),
)
"""Plans whose references lead nowhere, and whose tables are not complete."""

CASES = {**VALID, **BROKEN, **{f"structure {n}": plan for n, plan in enumerate(LOST)}}


def judged(case: Plan | tuple[Plan, Problem]) -> dict[str, list[str]]:
    return broken(case) if isinstance(case, Plan) else broken(*case)


def as_text() -> str:
    """Return what the checker says of all plans."""
    lines = []
    for claim, case in CASES.items():
        found = judged(case)
        lines.append(claim)
        lines += [f"    {rule}: {message}" for rule, some in found.items() for message in some]
    return "\n".join(lines) + "\n"


def test_of_each_plan_the_checker_says_what_it_is_to_say() -> None:
    assert as_text().splitlines() == SAID.read_text().splitlines()


@pytest.mark.parametrize(
    ("cases", "is_right"),
    [
        (VALID.values(), lambda rules: not rules),
        (BROKEN.values(), lambda rules: rules and "structure" not in rules),
        (LOST, lambda rules: rules == {"structure"}),
    ],
    ids=["valid", "broken", "lost"],
)
def test_each_plan_is_of_its_table(cases: Any, is_right: Callable[[set[str]], bool]) -> None:
    assert all(is_right(set(judged(case))) for case in cases)


def test_long_lists_of_violations_are_cut_and_counted() -> None:
    residencies = tuple(replace(residency, index=0) for residency in PLAN.residencies)
    found = check(PROBLEM, replace(PLAN, residencies=residencies))
    assert len(found) == LISTED + 1
    assert found[-1].message == "and 2 more violations of structure"


if __name__ == "__main__":
    SAID.write_text(as_text())
