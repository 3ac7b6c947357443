"""CDM: what its algorithm chooses fits, gains, and is counted right."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf

import pytest

from spmilp.policies.cdm import Accesses, Choice, Improvement, add_stays
from spmilp.policies.one_after_another import Setting
from spmilp.problem.problem import Problem
from tests.policies.small_instances import QUICK, small_instance
from tests.solvers.chains import chain, star


def cost(accesses: Accesses, chosen: Mapping[int, Choice]) -> int:
    busy = accesses.base.copy()
    for choice in chosen.values():
        busy.reshape(-1)[choice.places] += choice.cycles
    return int(busy.max(axis=1).sum())


def fits(accesses: Accesses, chosen: Mapping[int, Choice]) -> bool:
    used = accesses.fixed.copy()
    for choice in chosen.values():
        add_stays(used, choice, 1)
    capacity = [blocks or inf for blocks in accesses.setting.tables.capacity]
    return bool((used.max(axis=1) <= capacity).all())


def assert_it_fits_and_gains(problem: Problem) -> tuple[Accesses, Improvement]:
    accesses = Accesses(Setting(problem, "cdm"))
    found = Improvement(accesses)
    off_chip = found.cost()
    found.run(accesses.choices, lambda: False)
    assert fits(accesses, found.chosen)
    assert found.cost() == cost(accesses, found.chosen) < off_chip
    return accesses, found


def slow_links(problem: Problem) -> Problem:
    links = tuple(replace(link, rate=Fraction(2)) for link in problem.machine.links)
    return replace(problem, machine=replace(problem.machine, links=links))


@pytest.mark.parametrize("spm", [900, 1100, 4096])
def test_no_choices_together_cost_less_on_a_small_chain(spm: int) -> None:
    accesses, found = assert_it_fits_and_gains(slow_links(chain(star(2, spm), layers=1, strips=3)))
    every = (
        dict(zip(accesses.choices, some, strict=True))
        for some in product(*accesses.choices.values())
    )
    assert found.cost() == min(cost(accesses, some) for some in every if fits(accesses, some))


@pytest.mark.parametrize("name", QUICK)
def test_what_is_chosen_fits_and_gains(name: str) -> None:
    assert_it_fits_and_gains(small_instance(name))
