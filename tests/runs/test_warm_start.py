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
from spmilp.warm_start import carried_over, handed_on, is_valid_on, on_machine

MODELS = Path(__file__).parents[2] / "models"
RING = """
name: ring8
topology: {type: ring, routers: 8, rate_bytes_per_cycle: 8, latency_cycles: 1}
core_kinds:
  core:
    arrays: [{dtype: int8, K: 4, C: 4}, {dtype: float32, K: 4}]
    lanes: {int8: 8, float32: 4}
    launch_cycles: 20
scratchpads:
  - cores: {core: 1}
    size_kib: 64
    dma: [{channels: 1, setup_cycles: 20, rate_bytes_per_cycle: 4}]
dram: [{sites: [r_0], rate_bytes_per_cycle: 4, latency_cycles: 40}]
"""


@pytest.fixture(scope="module")
def small(files: tuple[Path, Path]) -> tuple[MachineFile, spmilp.Result]:
    machine = spmilp.load_machine(files[1]).replace(spm="4KiB")
    return machine, spmilp.solve(files[0], machine, solver="list")


TWICE = {"dram_rate": 8, "dma_rate": 8, "topology.rate_bytes_per_cycle": 16}


@pytest.mark.parametrize("more", [{"spm": "16KiB"}, {"dma_channels": 3}, TWICE])
def test_a_plan_holds_where_there_is_more(
    small: tuple[MachineFile, spmilp.Result], more: dict[str, object]
) -> None:
    machine, result = small
    assert result.plan is not None
    larger = machine.replace(fields=more)
    assert is_valid_on(result.problem, result.plan, larger)

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
    assert is_valid_on(result.problem, result.plan, machine.replace(spm=result.peak_spm))
    assert not is_valid_on(result.problem, result.plan, machine.replace(spm=result.peak_spm - 1))


def test_faster_transfers_that_a_link_does_not_carry_together_are_refused(
    small: tuple[MachineFile, spmilp.Result],
) -> None:
    machine, result = small
    assert result.plan is not None
    assert not is_valid_on(result.problem, result.plan, machine.replace(dma_rate="9/2"))


def test_an_order_holds_with_other_times_where_its_times_do_not(
    small: tuple[MachineFile, spmilp.Result],
) -> None:
    machine, result = small
    assert result.plan is not None
    problem = on_machine(result.problem, machine.replace(dma_rate="9/2"))
    plan = carried_over(problem, result.plan, spmilp.bound(problem))
    assert plan is not None
    assert check(problem, plan) == ()


LINKS = {"dram_rate": 8, "topology.rate_bytes_per_cycle": 16}


@pytest.mark.parametrize("more", [LINKS, TWICE])
def test_more_bandwidth_of_links_that_transfers_cannot_use_or_of_all_alike_is_never_worse(
    small: tuple[MachineFile, spmilp.Result], more: dict[str, object]
) -> None:
    machine, result = small
    assert result.plan is not None
    assert is_valid_on(result.problem, result.plan, machine.replace(fields=more))


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "machine", "sizes"),
    [("ds_cnn_int8", "ring", "64k,128k"), ("resnet8_int8", "mesh4x4", "32k,64k")],
)
def test_more_memory_is_never_worse_with_little_time(
    model: str, machine: str, sizes: str, tmp_path: Path
) -> None:
    (tmp_path / "ring.yaml").write_text(RING)
    file = tmp_path / "ring.yaml" if machine == "ring" else machine
    values = {"spm": values_of("spm", sizes)}
    how = [settings_of({"time_limit": 2.0})]
    points = points_of([MODELS / f"{model}.onnx"], [file], how, values, {})
    rows = Rows(store=Store(tmp_path), executor=Here())
    rows.solve(points)
    rows.warm_start(points)
    smaller, larger = (rows.found[point.key] for point in points)
    assert smaller.makespan is not None
    assert larger.makespan is not None
    assert larger.makespan <= smaller.makespan
    result = spmilp.read(rows.store.folder_of(larger.key))
    assert (result.makespan, result.violations) == (larger.makespan, ())


def test_a_row_without_a_plan_gets_that_of_a_smaller_machine(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    values = {"spm": values_of("spm", "3k,4k")}
    points = points_of(files[:1], files[1:], [settings_of(OPTIONS)], values, {})
    rows = Rows(store=Store(tmp_path), executor=Here())
    rows.solve(points)
    alone = {key: row.makespan for key, row in rows.found.items()}
    rows.warm_start(points)
    first, last = (rows.found[point.key] for point in points)
    assert alone[last.key] > alone[first.key]
    # With the tiles of the smaller machine the rule may find an even better plan.
    assert last.makespan <= first.makespan == alone[first.key]
    assert last.warm_start == first.key
    # What was kept is found again, by whoever opens the folder.
    assert Store(tmp_path).find(last.key) == last
    (tmp_path / "rows" / last.key / "plan.json").unlink()
    assert Store(tmp_path).find(last.key) is None
