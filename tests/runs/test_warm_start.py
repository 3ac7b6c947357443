"""A plan of a machine is one of a machine that has more, and the better one counts."""

from pathlib import Path

import pytest

import spmilp
from runs.here import Here
from runs.small import OPTIONS
from spmilp.checker.check import check
from spmilp.machine.read import MachineFile
from spmilp.runs.jobs import Store
from spmilp.runs.points import points_of, settings_of, values_of
from spmilp.runs.sweep import Rows
from spmilp.warm_start import carried_over, handed_on, on_machine


@pytest.fixture(scope="module")
def small(files: tuple[Path, Path]) -> tuple[MachineFile, spmilp.Result]:
    machine = spmilp.load_machine(files[1]).replace(spm="4KiB")
    return machine, spmilp.solve(files[0], machine, solver="list")


def is_valid_on(result: spmilp.Result, machine: MachineFile) -> bool:
    """Whether a plan is valid on another machine of the same parts, as the checker judges."""
    assert result.plan is not None
    target = on_machine(result.problem, machine)
    return not check(target, handed_on(target, result.plan, spmilp.bound(target)))


TWICE = {"dram_rate": 8, "dma_rate": 8, "topology.rate_bytes_per_cycle": 16}


@pytest.mark.parametrize("more", [{"spm": "16KiB"}, {"dma_channels": 3}, TWICE])
def test_a_plan_holds_where_there_is_more(
    small: tuple[MachineFile, spmilp.Result], more: dict[str, object]
) -> None:
    machine, result = small
    assert result.plan is not None
    larger = machine.replace(fields=more)
    assert is_valid_on(result, larger)

    problem = on_machine(result.problem, larger)
    plan = handed_on(problem, result.plan, spmilp.bound(problem))
    assert check(problem, plan) == ()
    assert plan.claim.makespan <= result.makespan
    faster = sum(move.end - move.start for move in plan.transfers)
    before = sum(move.end - move.start for move in result.plan.transfers)
    assert (faster < before) == ("dram_rate" in more)


def test_a_plan_does_not_hold_where_its_bytes_or_channels_are_not(
    small: tuple[MachineFile, spmilp.Result],
) -> None:
    machine, result = small
    assert result.plan is not None
    assert is_valid_on(result, machine.replace(spm=result.peak_spm))
    assert not is_valid_on(result, machine.replace(spm=result.peak_spm - 1))


def test_faster_transfers_that_a_link_does_not_carry_together_are_refused(
    small: tuple[MachineFile, spmilp.Result],
) -> None:
    machine, result = small
    assert result.plan is not None
    assert not is_valid_on(result, machine.replace(dma_rate="9/2"))


def test_an_order_holds_with_other_times_where_its_times_do_not(
    small: tuple[MachineFile, spmilp.Result],
) -> None:
    machine, result = small
    assert result.plan is not None
    problem = on_machine(result.problem, machine.replace(dma_rate="9/2"))
    plan = carried_over(problem, result.plan, spmilp.bound(problem))
    assert check(problem, plan) == ()


def test_a_row_without_a_plan_gets_that_of_a_smaller_machine(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    values = {"spm": values_of("spm", "3.5k,4k")}
    points = points_of(files[:1], files[1:], [settings_of(OPTIONS)], values, {})
    rows = Rows(store=Store(tmp_path), executor=Here())
    rows.solve(points)
    rows.found[points[1].key] = points[1].ended("unknown", "no time")
    rows.warm_start(points)
    first, last = (rows.found[point.key] for point in points)
    # It is that plan: a second search would have made the comparison of the two unfair.
    assert last.makespan == first.makespan
    assert last.warm_start == first.key
    # What was kept is found again, by whoever opens the folder.
    assert Store(tmp_path).find(last.key) == last
