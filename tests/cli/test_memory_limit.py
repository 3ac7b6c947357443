"""A limit on memory ends the search with the plan there is, and everything where it is exceeded."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.fakes import FakeSolver, answer
from spmilp.checker.check import check
from spmilp.errors import ExitCode, NoPlanError
from spmilp.options import Options
from spmilp.plan.file import open_pair
from spmilp.watch import SHARE_OF_SEARCH, Watch, memory_in_use
from tests.acceptance.doors import MODELS, Run

pytestmark = pytest.mark.full

LIMIT = 1 << 30
MOST = int(SHARE_OF_SEARCH * LIMIT) + 1


@pytest.fixture(autouse=True)
def _heeding_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the process use so many bytes."""

    def in_use(number: int) -> None:
        monkeypatch.setattr("spmilp.watch.memory_in_use", lambda: number)

    in_use(0)
    return in_use


def watch() -> Watch:
    return Watch(Options.of({"memory_limit": LIMIT}))


def sleep(seconds: float = 10.0, *, has_plan: bool = False) -> Watch:
    with watch() as watched:
        if has_plan:
            watched.log.note("list", 7, None)
        time.sleep(seconds)
    return watched


def test_without_a_plan_the_search_may_use_all_of_it(use: Callable[[int], None]) -> None:
    use(MOST)
    assert sleep(0.5).memory is None
    with pytest.raises(NoPlanError, match="ends the search"):
        sleep(has_plan=True)
    use(LIMIT + 1)
    with pytest.raises(NoPlanError, match=r"limit of 1\.0 GiB .* 1\.0 GiB are in use"):
        sleep()


def test_an_interrupt_that_is_lost_comes_again_where_the_limit_is_exceeded(
    use: Callable[[int], None],
) -> None:
    lost = []

    def lose_the_first() -> None:
        with watch():
            try:
                use(LIMIT + 1)
                time.sleep(10.0)
            except KeyboardInterrupt as first:
                lost.append(first)
            time.sleep(10.0)

    with pytest.raises(NoPlanError):
        lose_the_first()
    assert len(lost) == 1


def test_a_process_knows_how_much_memory_it_uses() -> None:
    before = memory_in_use()
    block = bytearray(b"x" * (64 << 20))
    assert before + len(block) // 2 < memory_in_use() < before + 4 * len(block)


def test_the_best_plan_so_far_is_written_and_the_limit_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, use: Callable[[int], None]
) -> None:
    # Tiles were evaluated before: there is a plan when the solver begins to use too much.
    def greedy() -> None:
        use(MOST)
        time.sleep(10.0)

    solver = FakeSolver(answer(), before=greedy)
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: solver)
    network = (MODELS / "ds_cnn_int8.onnx", "-m", "gap9", "--time-limit", "5s")
    ended = run("solve", *network, "--memory-limit", "1GiB", "-o", "out", "--json")

    assert (ended.code, ended.json["solver"], ended.json["checked"]) == (0, "list", True)
    assert "memory limit of 1.0 GiB" in ended.err
    assert check(*open_pair(Path("out/plan.json"), None)) == ()


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
