"""Plans simulated: in their own order, as soon as they may, on links that are shared."""

import json
from pathlib import Path

import pytest

from commands.small import load_run_store
from spmilp.errors import ArgumentError
from spmilp.pipeline import solve
from spmilp.result import Result, read
from spmilp.simulator.simulate import simulate
from tests.acceptance.doors import Run

LSTM = Path(__file__).parents[2] / "models" / "tiny_lstm_f32.onnx"


@pytest.fixture(scope="module")
def result() -> Result:
    """Return a plan of a small network on sixteen cores, whose transfers meet on links."""
    return solve(LSTM, "mesh4x4", solver="list", time_limit=None)


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


def test_the_chain_accounts_for_every_cycle(result: Result) -> None:
    exact = result.simulate().exact

    assert sum(exact.cycles().values()) == pytest.approx(exact.makespan)
    assert exact.cycles()["sharing"] >= 0
    ends = [one.after.end for one in exact.activities if one.after is not None]
    starts = [one.start for one in exact.activities if one.after is not None]
    assert starts == pytest.approx(ends), "nobody idles behind what it waits for"


def test_jitter_varies_makespans_and_is_the_same_each_time(result: Result) -> None:
    found, again = (result.simulate(jitter=0.1, seeds=5) for _ in range(2))

    assert found.makespans == again.makespans
    assert len(set(found.makespans)) == 5
    assert 0.85 * found.exact.makespan < found.makespans[0]
    assert found.makespans[-1] < 1.25 * found.exact.makespan


def test_no_seed_without_jitter_and_no_jitter_of_all(result: Result) -> None:
    assert result.simulate(seeds=2).makespans == (result.simulate().exact.makespan,) * 2
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
    slices = [
        e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"
    ]
    assert max(e["ts"] + e["dur"] for e in slices) == round(found.json["simulated"])
    assert f"planned {found.json['planned']:,}" in run("simulate", tiny).out
