"""CDM: its program against all placements, its ablations, its algorithm, plans that pass."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from spmilp.checker.check import check
from spmilp.plan.file import plan_text
from spmilp.policies.cdm import Cdm, Freedom, Improvement, PlacementProgram
from spmilp.policies.cdm_accesses import Accesses, Placement, Role, Variable
from spmilp.policies.one_after_another import the_dram
from spmilp.policies.onsram import cores_of
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.exact.milp.program import Limits
from tests.policies.small_instances import SMALL, small_instance
from tests.solvers.chains import chain, star

NO_LIMITS = Limits(seconds=None, threads=1, seed=0)
REFUSED = {
    "layers-20t-3c": "1 DRAM; this one has 0",
    "stages-24t-4c-crossbar-staged-tight-compute": "(1024 B) from spm_0 to dram in one transfer",
}
QUICK = (
    "attention-22t-2c-crossbar-verytight-balanced-dramtraffic",
    "branch-15t-4c-mesh2x2-remote-tight-balanced",
    "lstm-27t-3c-crossbar-tight-compute",
    "mlp-8t-4c-bus-shared4-tight-compute",
)
ABLATIONS = {
    "off chip": Freedom(private=False, shared=False),
    "private": Freedom(shared=False),
    "without replication": Freedom(replication=False),
    "without contention": Freedom(contention=False),
}


def accesses_of(problem: Problem) -> Accesses:
    tables = ProblemTables(problem)
    return Accesses(tables, cores_of(tables), the_dram(problem, "cdm"))


def exactly(accesses: Accesses, freedom: Freedom) -> Placement:
    found = PlacementProgram(accesses, freedom).solve(NO_LIMITS)
    assert found is not None
    return found


def by_moves(accesses: Accesses, freedom: Freedom) -> Placement:
    return Improvement(accesses, freedom, frozenset()).run(lambda: False)


def all_of_one(accesses: Accesses, one: Variable, freedom: Freedom) -> Iterator[Placement]:
    """Yield every placement of one buffer that makes sense, by the rules in words."""
    allowed = {p.index for p in accesses.parts if freedom.allows(accesses, p.index)}
    for home in (None, *one.homes):
        for chosen in product(*(p for memory, p in one.readers.items() if memory != home)):
            needed = {accesses.parts[part].needs for part in chosen} - {None}
            own = set() if home is None else {one.homes[home]}
            if needed <= own | {one.store}:
                placement = frozenset({*own, *chosen, *(n for n in needed if n is not None)})
                if placement <= allowed:
                    yield placement


def least_cost(accesses: Accesses, freedom: Freedom) -> int:
    every = (all_of_one(accesses, one, freedom) for one in accesses.variables.values())
    together = (frozenset[int]().union(*some) for some in product(*every))
    fitting = (one for one in together if not list(accesses.without_room(one)))
    return min(accesses.cost(one, contention=freedom.contention) for one in fitting)


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
    for freedom in (Freedom(), *ABLATIONS.values()):
        found = exactly(accesses, freedom)

        assert list(accesses.without_room(found)) == []
        assert accesses.cost(found, contention=freedom.contention) == least_cost(accesses, freedom)


def test_the_program_is_never_worse_than_an_ablation_or_the_algorithm() -> None:
    better = dict.fromkeys([*ABLATIONS, "by moves"], 0)
    for name in QUICK:
        accesses = accesses_of(small_instance(name))
        best = accesses.cost(exactly(accesses, Freedom()))
        others = {key: exactly(accesses, freedom) for key, freedom in ABLATIONS.items()}
        others["by moves"] = by_moves(accesses, Freedom())
        for key, placement in others.items():
            assert list(accesses.without_room(placement)) == [], (name, key)
            assert best <= accesses.cost(placement), (name, key)
            better[key] += best < accesses.cost(placement)

    assert all(better.values()), better


def test_shared_data_is_replicated_where_each_core_reads_it_more_than_once() -> None:
    """The weights are read by two tasks on each core, and links carry two bytes in a cycle."""
    accesses = accesses_of(slow_links(chain(star(2, 8192), layers=1, strips=4), Fraction(2)))
    weights = accesses.variables[max(accesses.variables)]

    with_replicas = exactly(accesses, Freedom()) & frozenset().union(*weights.readers.values())
    roles = [accesses.parts[part].role for part in with_replicas]
    assert roles.count(Role.REPLICA) == 1

    without = exactly(accesses, Freedom(replication=False))
    assert accesses.cost(without) > accesses.cost(exactly(accesses, Freedom()))


@pytest.mark.parametrize("name", SMALL)
def test_every_plan_passes_the_checker_and_a_refusal_has_name_and_number(name: str) -> None:
    problem = small_instance(name)
    is_quick = name in QUICK or name in REFUSED
    for exact in (False, True) if is_quick else (False,):
        policy = Cdm(exact=exact)
        result = policy.solve(problem, SolveOptions())

        if name in REFUSED:
            assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
            assert REFUSED[name] in result.reason
        else:
            assert result.plan is not None
            assert check(problem, result.plan) == ()
            assert result.plan.solver == policy.name


@pytest.mark.parametrize("exact", [False, True])
def test_the_same_problem_gives_the_same_plan(exact: bool) -> None:
    problem = small_instance("branch-15t-4c-mesh2x2-remote-tight-balanced")
    plans = [Cdm(exact=exact).solve(problem, SolveOptions()).plan for _ in range(2)]

    assert len({plan_text(plan, problem) for plan in plans if plan is not None}) == 1


def test_a_late_limit_leaves_everything_off_chip_and_still_a_plan() -> None:
    problem = small_instance("mlp-8t-4c-bus-shared4-tight-compute")
    result = Cdm(exact=True).solve(problem, SolveOptions(time_limit=0.0))

    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert dict(result.plan.options)["homes"] == "0"


def test_a_program_that_is_too_large_is_refused_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spmilp.policies.cdm.MOST_PARTS", 3)
    result = Cdm(exact=True).solve(chain(star(2, 4096), layers=1, strips=2), SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert "cdm:ilp takes programs of 3 variables; this one has 1" in result.reason
