"""Plans simulated: in their own order, as soon as they may, on links that are shared."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands.helpers import with_latency
from commands.small import load_run_store
from spmilp.checker.values.replay import replay
from spmilp.errors import ArgumentError
from spmilp.pipeline import solve
from spmilp.result import Result, read
from spmilp.simulator.simulate import simulate
from tests.acceptance.doors import Run

LSTM = Path(__file__).parents[2] / "models" / "tiny_lstm_f32.onnx"


@pytest.fixture(scope="module")
def result() -> Result:
    """Return a plan of a small network on sixteen cores, whose transfers meet on links."""
    return solve(LSTM, "edge16", solver="list", time_limit=None)


def test_everything_starts_as_soon_as_what_it_waits_for_has_ended() -> None:
    problem, plan = load_run_store()
    rows = simulate(problem, plan).activities()

    # Two loads of 8 B share 8 B per cycle. The second task takes bytes of the first one's operand.
    assert [*zip(rows["start"], rows["end"], strict=True)] == [
        *((2.0, 12.0), (12.0, 22.0)),
        *((0.0, 2.0), (0.0, 2.0), (12.0, 13.0), (22.0, 23.0)),
    ]
    assert rows["after"].iloc[1] == rows["what"].iloc[0]
    assert [*rows["late"]] == [-8.0, -8.0, 0.0, 0.0, -8.0, -8.0]


@pytest.mark.parametrize("pipelined", [False, True])
def test_nobody_idles_and_numbers_do_not_depend_on_how_long_anything_takes(
    result: Result, pipelined: bool
) -> None:
    assert result.plan is not None
    assert result.origin is not None
    problem = with_latency(result.problem, latency=40, pipelined=pipelined)
    tasks = [
        replace(each, end=each.start + 1 + 37 * each.task % 900) for each in result.plan.placements
    ]
    found = simulate(problem, replace(result.plan, placements=tuple(tasks)))
    cycles = found.exact.cycles()
    assert sum(cycles.values()) == pytest.approx(found.exact.makespan)
    assert min(cycles.values()) >= 0
    for one in found.exact.activities:
        assert one.after is None or one.start in (one.after.sent, one.after.end)

    network = result.origin.network
    shapes = {name: network.tensors[name].shape for name in network.inputs}
    inputs = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    expected, timed = replay(problem, result.plan, network, inputs), found.timed_plan()
    # Lists order accesses, not residencies: of one, bytes may be written while others are read.
    last = max(one.end for one in (*timed.placements, *timed.transfers))
    stays = tuple(replace(one, end=last) for one in timed.residencies)
    for name, values in replay(problem, replace(timed, residencies=stays), network, inputs).items():
        np.testing.assert_array_equal(values, expected[name])


def test_jitter_varies_makespans_and_is_the_same_each_time(result: Result) -> None:
    found, again = (result.simulate(jitter=0.1, seeds=5) for _ in range(2))

    assert found.makespans == again.makespans
    assert len(set(found.makespans)) == 5
    assert sum(int(line.split()[-1]) for line in found.lines()[-10:]) == 5, "the histogram"
    assert 0.85 * found.exact.makespan < found.makespans[0]
    assert found.makespans[-1] < 1.25 * found.exact.makespan


def test_no_seed_without_jitter_and_no_jitter_of_all(result: Result) -> None:
    assert result.simulate(seeds=2).makespans == (result.simulate().exact.makespan,) * 2
    assert f"{round(result.simulate().exact.makespan):,} cycles" in str(result)
    delays = result.explain().data["delays"]
    assert delays == result.simulate().delays() != []
    with pytest.raises(ArgumentError, match=r"jitter: 1, expected at least 0 and less than 1"):
        result.simulate(jitter=1.0)


def test_the_command_says_by_when_all_has_ended(run: Run, tiny: Path, tmp_path: Path) -> None:
    found = run(
        "simulate", tiny, "--jitter", "5%", "--seeds", 3, "-o", tmp_path / "t.json", "--json"
    )

    assert found.code == 0
    assert found.json["planned"] == read(tiny).makespan
    assert found.json["simulated"] == pytest.approx(sum(found.json["chain"].values()))
    assert len(found.json["makespans"]) == 3
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    last = max(e["ts"] + e.get("dur", 0) for e in events if e["ph"] in "Xe")
    assert last == round(found.json["simulated"])
    assert f"planned {found.json['planned']:,}" in run("simulate", tiny).out
