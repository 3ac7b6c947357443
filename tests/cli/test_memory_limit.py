"""A limit on memory ends the search with the plan there is, and everything where it is exceeded."""

import time
from functools import partial
from pathlib import Path

import pytest

from cli.fakes import FakeSolver, answer
from cli.running import MODELS, Run
from spmilp.checker.check import check
from spmilp.cli.interrupts import Interrupted, Interrupts, interrupts_noted
from spmilp.errors import ExitCode
from spmilp.plan.file import open_pair
from spmilp.watch import SHARE_OF_SEARCH, memory_in_use, memory_watched

pytestmark = pytest.mark.full

LIMIT = 1 << 30
MOST = int(SHARE_OF_SEARCH * LIMIT) + 1


def until_interrupted(interrupts: Interrupts, used: int, seconds: float = 10.0) -> None:
    with memory_watched(LIMIT, interrupts, lambda: used):
        time.sleep(seconds)


def test_without_a_plan_the_search_may_use_all_of_it() -> None:
    with interrupts_noted() as interrupts:
        until_interrupted(interrupts, MOST, 0.5)
        with pytest.raises(Interrupted):
            until_interrupted(interrupts, LIMIT + 1)


def test_an_interrupt_that_is_lost_comes_again_where_the_limit_is_exceeded() -> None:
    used, lost = 0, []
    with interrupts_noted() as interrupts:

        def lose_the_first() -> None:
            nonlocal used
            with memory_watched(LIMIT, interrupts, lambda: used):
                try:
                    used = LIMIT + 1
                    time.sleep(10.0)
                except Interrupted as first:
                    lost.append(first)
                time.sleep(10.0)

        with pytest.raises(Interrupted):
            lose_the_first()
    assert len(lost) == 1


def test_what_exceeds_the_limit_ends_checking_and_writing_too() -> None:
    used, noted = MOST, []

    def finish(interrupts: Interrupts) -> None:
        nonlocal used
        with memory_watched(LIMIT, interrupts, lambda: used):
            time.sleep(0.5)
            noted.append(interrupts.memory)
            used = LIMIT + 1
            time.sleep(10.0)

    with interrupts_noted() as interrupts:
        interrupts.has_plan = interrupts.finishing = True
        with pytest.raises(Interrupted):
            finish(interrupts)
    assert noted == [(MOST, LIMIT)]


def test_a_process_knows_how_much_memory_it_uses() -> None:
    before = memory_in_use()
    block = bytearray(b"x" * (64 << 20))
    assert before + len(block) // 2 < memory_in_use() < before + 4 * len(block)


def test_the_best_plan_so_far_is_written_and_the_limit_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tiles were evaluated before: there is a plan when the solver begins to use too much.
    used = 0

    def greedy() -> None:
        nonlocal used
        used = MOST
        time.sleep(10.0)

    watched = partial(memory_watched, in_use=lambda: used)
    monkeypatch.setattr("spmilp.watch.memory_watched", watched)
    solver = FakeSolver(answer(), before=greedy)
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: solver)
    network = (MODELS / "ds_cnn_int8.onnx", "-m", "gap9", "--time-limit", "5s")
    ended = run("solve", *network, "--memory-limit", "1GiB", "-o", "out", "--json")

    assert (ended.code, ended.json["solver"], ended.json["checked"]) == (0, "list", True)
    assert "memory limit of 1.0 GiB" in ended.err
    assert check(*open_pair(Path("out/plan.json"), None)) == ()


def test_a_limit_that_does_not_suffice_at_all_says_both_numbers(run: Run) -> None:
    model = MODELS / "resnet8_int8.onnx"
    ended = run("solve", model, "-m", "gap9", "--memory-limit", "1MiB", "-o", "out")

    assert ended.code == ExitCode.LIMIT_WITHOUT_PLAN
    assert "memory limit of 1.0 MiB" in ended.err
    assert "MiB are in use; nothing was written" in ended.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 4.31 GiB"),
        ImportError("_highspy.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_cannot_be_had_is_no_internal_error(
    error: Exception, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy() -> None:
        raise error

    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: FakeSolver(answer(), greedy))
    model = MODELS / "ds_cnn_int8.onnx"
    ended = run("solve", model, "-m", "gap9", "--tiles", "first", "-o", "out", "-q")

    assert ended.code == ExitCode.LIMIT_WITHOUT_PLAN
    assert ended.err == f"error: out of memory ({error}); nothing was written\n"
