"""Streams replayed: each inference has its own inputs, and none spoils what another needs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands.helpers import with_latency
from spmilp.checker.values.compare import compare, reference_outputs
from spmilp.checker.values.inputs import random_inputs
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.replay import replay_stream
from spmilp.checker.values.state import ReplayError
from spmilp.frontend.graph import Network
from spmilp.pipeline import solve
from spmilp.plan.plan import Plan, Residency
from spmilp.plan.running import Running, enough_to_replay, running
from spmilp.problem.problem import Problem
from spmilp.result import Result
from spmilp.simulator.simulate import simulate
from spmilp.solvers.modulo import stream
from tests.acceptance.doors import Run

MODELS = Path(__file__).parents[2] / "models"
LSTM = MODELS / "tiny_lstm_f32.onnx"


def streamed(model: Path, machine: str) -> Result:
    return solve(model, machine, solver="list", time_limit=None).stream()


def parts(result: Result) -> tuple[Problem, Plan, Network]:
    assert result.plan is not None
    assert result.origin is not None
    return result.problem, result.plan, result.origin.network


def outputs(runs: Running, network: Network, inferences: int) -> list[dict[str, Array]]:
    """Return what each inference leaves, on inputs of its number."""
    inputs = [random_inputs(network, inference) for inference in range(inferences)]
    return replay_stream(runs, network, inputs, [{} for _ in inputs])


@pytest.fixture(scope="module")
def long() -> Result:
    """Return a stream of which five inferences overlap, with up to four instances."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "SHARES", (0.5,))
        patch.setattr(stream, "LONGER", (1.5,))
        return streamed(LSTM, "stream_quad")


@pytest.mark.full
def test_overlapped_inferences_compute_what_the_model_does(long: Result) -> None:
    problem, plan, network = parts(long)
    assert plan.stream is not None
    many = enough_to_replay(plan, plan.stream)
    assert many == 9
    found = outputs(running(problem, plan, many), network, many)
    for inference, one in enumerate(found):
        expected = reference_outputs(LSTM, random_inputs(network, inference))
        assert all(each.within for each in compare(one, expected, network))
    assert len({one["classes"].tobytes() for one in found}) == many


@pytest.mark.full
def test_an_instance_too_few_is_caught(long: Result) -> None:
    problem, plan, network = parts(long)
    assert plan.stream is not None
    for each in [one for one in plan.residencies if len(one.instances) == 3][:1]:
        changed: list[Residency] = list(plan.residencies)
        changed[each.index] = replace(each, instances=(each.offset,) * 3)
        broken = replace(plan, residencies=tuple(changed))
        with pytest.raises(ReplayError, match=r"of inference \d"):
            outputs(running(problem, broken, 6), network, 6)
    broken = replace(plan, stream=replace(plan.stream, instances=()))
    with pytest.raises(ReplayError, match=r"input.* in dram at \d+\), but"):
        outputs(running(problem, broken, 6), network, 6)


@pytest.mark.parametrize("pipelined", [True, pytest.param(False, marks=pytest.mark.full)])
def test_values_do_not_depend_on_how_long_anything_takes(pipelined: bool) -> None:
    """A loop's waits, not the plan's cycles, keep inferences apart."""
    given, plan, network = parts(streamed(LSTM, "vdla"))
    problem = with_latency(given, latency=40, pipelined=pipelined)
    tasks = [replace(one, end=one.start + 1 + 37 * one.task % 900) for one in plan.placements]
    found = simulate(problem, replace(plan, placements=tuple(tasks)))
    many = len(found.problem.tasks) // (len(problem.tasks) + 2)
    timed, runs = found.timed_plan(), running(problem, plan, many)
    # Lists order accesses, not residencies: of one, bytes may be written while others are read.
    last = max(one.end for one in (*timed.placements, *timed.transfers))
    stays = tuple(replace(one, end=last) for one in timed.residencies)
    late = replace(runs, plan=replace(timed, residencies=stays))
    ways = (outputs(each, network, many) for each in (runs, late))
    for one, other in zip(*ways, strict=True):
        for name in network.outputs:
            np.testing.assert_array_equal(one[name], other[name])


def test_the_command_replays_streams(run: Run, tmp_path: Path) -> None:
    result = streamed(MODELS / "ds_cnn_int8.onnx", "gap9")
    assert result.plan is not None
    assert result.plan.stream is not None
    result.save(tmp_path)
    model = MODELS / "ds_cnn_int8.onnx"
    found = run("replay", tmp_path, "--model", model, "--write", tmp_path, "--json")
    assert found.code == 0
    many = enough_to_replay(result.plan, result.plan.stream)
    assert many >= 4
    assert [each["inference"] for each in found.json["outputs"]] == [*range(many)]
    assert all(each["absolute"] <= 1 for each in found.json["outputs"])
    assert (tmp_path / "expected0.bin").stat().st_size == many * 12 * 4
    checked = run("check", tmp_path / "plan.json", "--commands", "--json")
    assert checked.json["commands"]["inferences"] > many
    simulated = run("simulate", tmp_path, "--json").json
    assert simulated["planned"] == result.plan.stream.period
    assert simulated["ratio"] == pytest.approx(1, abs=0.02)
