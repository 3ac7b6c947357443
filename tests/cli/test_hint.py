"""A plan from before as a hint (never worse with it) or as a lock; bad ones are refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import spmilp
from runs.small import MACHINE, write_files
from spmilp.errors import ArgumentError, FileError
from spmilp.frontend.load import load_network
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.read import MachineFile
from spmilp.problem.file import read_problem
from spmilp.registry import hint_takers, solver_names
from spmilp.tile_selection.given_tiles import tilings_of
from tests.acceptance.doors import Run

INSTANCES = Path(__file__).parents[2] / "instances" / "problems"
SMALL = INSTANCES / "mlp-8t-4c-bus-shared4-tight-compute.json"
GREEDY = ("greedy:contiguous/depth_first", "greedy:earliest_finish/critical_path")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MachineFile]:
    model, machine = write_files(tmp_path_factory.mktemp("small"))
    return model, spmilp.load_machine(machine)


@pytest.mark.full
@pytest.mark.parametrize(
    ("tilings", "is_better"),
    [
        ({0: Tiling(counts=(8, 16)), 1: Tiling(counts=(8, 16))}, False),
        ({0: Tiling(counts=(4, 8)), 1: Tiling(counts=(4, 8))}, True),
    ],
)
def test_the_tiles_of_a_hint_are_kept_as_long_as_no_others_beat_its_plan(
    tilings: Tilings, is_better: bool, files: tuple[Path, MachineFile], tmp_path: Path
) -> None:
    model, machine = files
    network = load_network(model, {}, machine.machine)
    sources = (("model", network.sha256), ("machine", machine.sha256))
    problem = lower(network, machine.machine, tilings, sources=sources)
    assert tilings_of(problem, network) == tilings

    own = spmilp.solve(problem, solver="lns", time_limit=None)
    first = spmilp.solve(model, machine, solver="lns", time_limit=None)
    assert (own.makespan < first.makespan) == is_better
    own.save(tmp_path)
    again = spmilp.solve(model, machine, solver="lns", hint=tmp_path, time_limit=None)
    assert again.problem == (own.problem if is_better else first.problem)
    assert again.makespan <= min(own.makespan, first.makespan)


def test_a_plan_serves_the_same_graph_with_other_weights_and_no_other_graph(
    files: tuple[Path, MachineFile], tmp_path: Path
) -> None:
    model, machine = files
    first = spmilp.solve(model, machine, solver="search", tiles="first", effort=0.1)
    trained = onnx.load(model)
    for one in trained.graph.initializer:
        one.CopyFrom(numpy_helper.from_array(np.full((32, 32), 0.25, np.float32), one.name))
    onnx.save(trained, tmp_path / "trained.onnx")
    options = {"solver": "search", "tiles": "first", "effort": 0.1, "hint": first}
    again = spmilp.solve(tmp_path / "trained.onnx", machine, **options)
    assert again.makespan <= first.makespan
    assert again.replay()["within"].all()
    longer = write_files(tmp_path, layers=3)[0]
    with pytest.raises(FileError, match="the plan was made for another model"):
        spmilp.solve(longer, machine, **options)


def test_bad_hints_are_refused_with_what_is_wrong(
    files: tuple[Path, MachineFile], run: Run, tmp_path: Path
) -> None:
    model = files[0]
    good = spmilp.solve(SMALL, solver="list")
    good.save(tmp_path / "good")
    assert good.plan is not None

    def refused(source: object, hint: object, *machine: object) -> str:
        ended = run("solve", source, *machine, "--hint", hint, "-o", "never", "-q")
        assert (ended.code, ended.out) == (3, "")
        assert not Path("never").exists()
        return ended.err

    other = INSTANCES / "gru-12t-2c-crossbar-ample-balanced.json"
    assert "it is for a machine of 2 memories, not of 3" in refused(other, tmp_path / "good")
    assert "the plan was made for another model" in refused(model, tmp_path / "good")
    text = json.loads((tmp_path / "good" / "plan.json").read_text())
    text["tasks"][0]["start"] += 1
    (tmp_path / "good" / "plan.json").write_text(json.dumps(text))
    assert "the checker rejects this plan: " in refused(SMALL, tmp_path / "good")
    (tmp_path / "good" / "plan.json").write_text("{")
    assert "plan.json" in refused(SMALL, tmp_path / "good" / "plan.json")
    with pytest.raises(FileError, match="another problem"):
        spmilp.solve(other, hint=replace(good.plan, problem_sha256="0" * 64))


def test_solvers_that_begin_with_no_plan_say_so() -> None:
    assert set(hint_takers()) <= set(solver_names())
    with pytest.raises(ArgumentError, match=r"hint: solver list begins with no plan; .* lns,"):
        spmilp.solve(SMALL, solver="list", hint="any.json")


def test_a_lock_keeps_the_tiles_and_addresses_of_another_release(
    files: tuple[Path, MachineFile], run: Run, tmp_path: Path
) -> None:
    model, machine = files
    longer, _ = write_files(tmp_path, layers=3)
    pins = {"tiles": [{"group": "y0", "tiles": "2x4"}]}
    before = spmilp.solve(model, machine, solver=GREEDY[0], time_limit=None, pins=pins)
    assert before.plan is not None
    before.save(tmp_path / "v1")
    asked = ("-m", tmp_path / "pair.yaml", "--solver", "list", "--time-limit", "none", "-q")
    (tmp_path / "pair.yaml").write_text(MACHINE)
    ended = run("solve", longer, *asked, "--lock", tmp_path / "v1", "-o", "v2", "--json")
    assert ended.code == 0
    lock = ended.json["lock"]
    after = read_problem(Path("v2") / "problem.json")
    first = [task for task in after.tasks if task.tile and task.tile.of == "y0"]
    assert len(first) == 8
    assert lock["kept"] > len(lock["moved"])
    assert lock["unlocked"]["makespan"] > 0
    assert lock["origin"].endswith("plan.json")

    ended = run("solve", longer, *asked, "--lock", tmp_path / "v1", "--lock-buffers", "w9*")
    assert (ended.code, ended.out) == (2, "")
    assert "has no buffer or tensor w9*" in ended.err
    (tmp_path / "v1" / "problem.json").unlink()
    ended = run("solve", longer, *asked, "--lock", tmp_path / "v1" / "plan.json")
    assert ended.code == 3
    assert "put problem.json beside it" in ended.err
