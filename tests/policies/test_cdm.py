"""CDM: its program against all placements, its ablations, its algorithm."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from benchmarks.published.cdm import LESS, Less, left_out
from spmilp.policies.cdm import Cdm, Improvement, PlacementProgram
from spmilp.policies.cdm_accesses import Accesses, Placement, Variable
from spmilp.policies.one_after_another import Setting
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.milp.program import Limits
from tests.policies.small_instances import QUICK, small_instance
from tests.solvers.chains import chain, star

NO_LIMITS = Limits(seconds=None, threads=1, seed=0)


def accesses_of(problem: Problem) -> Accesses:
    return Accesses(Setting(problem, "cdm"))


def fits(accesses: Accesses, placement: Placement) -> bool:
    capacity = accesses.setting.tables.capacity
    limits = {event: capacity[event[0]] for event in accesses.used(placement)}
    used = accesses.used(placement).items()
    return all(limits[event] is None or blocks <= (limits[event] or 0) for event, blocks in used)


def exactly(accesses: Accesses, less: Less | None = None) -> Placement:
    found = PlacementProgram(accesses, left_out(accesses, less)).solve(NO_LIMITS)
    assert found is not None
    return found


def all_of_one(accesses: Accesses, one: Variable, less: Less | None) -> Iterator[Placement]:
    """Yield every placement of one buffer that makes sense, by the rules in words."""
    apart = left_out(accesses, less)
    for home in (None, *one.homes):
        for chosen in product(*(p for memory, p in one.readers.items() if memory != home)):
            needed = {accesses.parts[part].needs for part in chosen} - {None}
            own = set() if home is None else {one.homes[home]}
            if needed <= own | {one.store}:
                placement = frozenset({*own, *chosen, *(n for n in needed if n is not None)})
                if placement.isdisjoint(apart):
                    yield placement


def least_cost(accesses: Accesses, less: Less | None) -> int:
    every = (all_of_one(accesses, one, less) for one in accesses.variables.values())
    together = (frozenset[int]().union(*some) for some in product(*every))
    fitting = (one for one in together if fits(accesses, one))
    return min(map(accesses.cost, fitting))


def slow_links(problem: Problem, rate: Fraction) -> Problem:
    links = tuple(replace(link, rate=rate) for link in problem.machine.links)
    return replace(problem, machine=replace(problem.machine, links=links))


@pytest.mark.parametrize("spm", [900, 1100, 4096])
@pytest.mark.parametrize(("layers", "strips"), [(1, 2), (1, 3), (2, 1)])
def test_the_program_finds_what_trying_all_placements_finds(
    spm: int, layers: int, strips: int
) -> None:
    problem = slow_links(chain(star(2, spm), layers=layers, strips=strips), Fraction(2))
    accesses = accesses_of(problem)
    for less in (None, *LESS.values()):
        found = exactly(accesses, less)
        assert fits(accesses, found)
        assert accesses.cost(found) == least_cost(accesses, less)


@pytest.mark.full
def test_the_program_is_never_worse_than_an_ablation_or_the_algorithm() -> None:
    better = dict.fromkeys([*LESS, "by moves"], 0)
    for name in QUICK:
        accesses = accesses_of(small_instance(name))
        best = accesses.cost(exactly(accesses))
        others = {key: exactly(accesses, less) for key, less in LESS.items()}
        others["by moves"] = Improvement(accesses).run(lambda: False)
        for key, placement in others.items():
            assert fits(accesses, placement), (name, key)
            assert best <= accesses.cost(placement), (name, key)
            better[key] += best < accesses.cost(placement)

    assert all(better.values()), better


def test_a_program_that_is_too_large_is_refused_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spmilp.policies.cdm.MOST_PARTS", 3)
    result = Cdm(exact=True).solve(chain(star(2, 4096), layers=1, strips=2), SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert "cdm:ilp takes programs of 3 variables; this one has 1" in result.reason
