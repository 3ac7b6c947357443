"""Heads and tails by what is before and after a task; sets of links that every route crosses."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.bounds.movement import Movement, least_rate
from spmilp.bounds.paths import Paths, paths_of
from spmilp.machine.machine import Link, RemoteReads
from spmilp.problem.pins import Pins, TaskPin
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.small import ProblemSketch, best_plan, machine


def paths_in(problem: Problem) -> Paths:
    return paths_of(problem, Movement(problem))


def join(cores: int, producers: int, cycles: int, size: int) -> Problem:
    """Return tasks that each write a buffer, and one of 5 cycles that reads them all."""
    sketch = ProblemSketch(machine(*[1024] * cores))
    names = [f"b{n}" for n in range(producers)]
    for name in names:
        sketch.buffer(name, size).task(f"to {name}", cycles, writes=[name])
    return sketch.task("join", 5, reads=names).problem()


def test_what_is_not_local_arrives_one_after_another() -> None:
    # 40 bytes hold the link for 10 cycles, after 2 to set up. Until 32 three tasks run in the
    # memory; the other two are on the link from 12 to 32.
    problem = join(cores=5, producers=5, cycles=10, size=40)

    assert paths_in(problem).head[-1] == 32
    plan = ListScheduler().solve(problem, SolveOptions()).plan
    assert plan.placements[-1].start >= 32


def test_what_is_read_remotely_need_not_arrive() -> None:
    problem = join(cores=5, producers=5, cycles=10, size=40)
    near = ProblemSketch(machine(*[1024] * 5, remote=RemoteReads(cycles_per_byte_hop=1)))
    for name in (names := [f"b{n}" for n in range(5)]):
        near.buffer(name, 40).task(f"to {name}", 10, writes=[name])

    assert paths_in(problem).head[-1] == 32
    assert paths_in(near.task("join", 5, reads=names).problem()).head[-1] == 10


@pytest.mark.full
def test_several_readers_elsewhere_do_not_need_several_transfers_from_the_writer() -> None:
    """One of them passes the data on: three readers elsewhere start before three transfers could
    have left the writer one after another, each of which holds its link for 10 cycles."""
    cores = machine(*[64] * 4)
    engines = tuple(replace(one, reaches=(one.reaches or ())[1:]) for one in cores.engines)
    sketch = ProblemSketch(replace(cores, engines=engines)).buffer("a", 40)
    sketch.task("a", 10, writes=["a"])
    for n in range(4):
        sketch.task(f"reader {n}", 100, reads=["a"])
    pinned = (TaskPin(task=task, cores=(core,)) for task, core in enumerate((0, 0, 1, 2, 3)))
    problem = replace(sketch.problem(), pins=Pins(tasks=tuple(pinned)))
    plan = best_plan(problem)

    assert plan.claim.makespan == 10 + 2 * 12 + 100 < 10 + 2 + 3 * 10 + 100
    assert paths_in(problem).tail[0] <= plan.claim.makespan


def links_of(*ends: tuple[str, str, int]) -> list[Link]:
    """Return links with these ends and bytes per cycle."""
    return [
        Link(index=index, source=source, target=target, rate=Fraction(rate))
        for index, (source, target, rate) in enumerate(ends)
    ]


def rates_of(links: Sequence[Link]) -> list[Fraction]:
    """Return the whole rate of each link."""
    return [link.rate for link in links]


def test_a_fast_dram_is_held_up_by_the_links_behind_its_port() -> None:
    # DRAM sends 16 bytes per cycle to a router that passes on 3 to each of two neighbours.
    links = links_of(
        ("dram", "port", 16),
        ("port", "left", 3),
        ("port", "right", 3),
        *((side, f"spm_{side}{n}", 9) for side in ("left", "right") for n in (0, 1)),
    )
    routes = [(0, 1, 3), (0, 1, 4), (0, 2, 5), (0, 2, 6)]

    assert least_rate(links, rates_of(links), routes) == 6


@pytest.mark.full
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rates=st.lists(st.integers(1, 9), min_size=6, max_size=6),
    chosen=st.sets(st.integers(0, 7), min_size=1),
)
def test_no_transfers_together_are_faster_than_the_least_rate(
    rates: list[int], chosen: set[int]
) -> None:
    # Two layers of two links each behind one of two first links: eight routes.
    links = links_of(
        ("dram", "a", rates[0]),
        ("dram", "b", rates[1]),
        ("a", "c", rates[2]),
        ("b", "c", rates[3]),
        ("c", "x", rates[4]),
        ("c", "y", rates[5]),
    )
    every = [(first, second, third) for first, second in ((0, 2), (1, 3)) for third in (4, 5)]
    routes = sorted({every[one % len(every)] for one in chosen})

    found = least_rate(links, rates_of(links), routes)

    used = sorted({link for route in routes for link in route})
    hitting = [
        some
        for size in range(1, len(used) + 1)
        for some in combinations(used, size)
        if all(set(some) & set(route) for route in routes)
    ]
    assert found in {sum((links[one].rate for one in some), Fraction(0)) for some in hitting}
