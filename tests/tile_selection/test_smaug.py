"""SMAUG's tiles: plans in them pass, and have few tasks."""

from pathlib import Path

import pytest

from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError
from spmilp.machine.read import load_machine
from spmilp.pipeline import problem_of
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.settings import TileOptions, Tiles

MODELS = Path(__file__).parents[2] / "models"


@pytest.mark.parametrize(("model", "machine"), [("ds_cnn_f32", "epiphany3")])
def test_plans_in_these_tiles_pass_and_have_fewer_tasks(model: str, machine: str) -> None:
    path = str(MODELS / f"{model}.onnx")
    problem = problem_of(path, machine, tiles=Tiles.SMAUG)
    result = find_solver("greedy:earliest_finish/critical_path").solve(problem, SolveOptions())

    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert len(problem.tasks) < len(problem_of(path, machine).tasks)


def test_a_scratchpad_that_is_too_small_is_named_with_both_numbers() -> None:
    target = load_machine("epiphany3").replace(spm=256 + 32)
    network, machine = load(str(MODELS / "ds_cnn_f32.onnx"), target)

    with pytest.raises(DoesNotFitError, match=r"needs \d+ B .*> \d+ B"):
        choose_tiles(NetworkOnMachine.of(network, machine), TileOptions(how=Tiles.SMAUG))
