"""``spmilp pack``: files in, checked offsets out, and every way in which that can end."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spmilp import packing
from spmilp.packing import Packing, PackingProblem, PackingStatus
from spmilp.packing.minimalloc import read_table
from tests.acceptance.doors import Run

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


def many_buffers() -> str:
    """Return a file that no simple heuristic packs without any loss."""
    random = Random(0)
    lines = []
    for i in range(150):
        lower = random.randrange(40)
        lines.append(f"b{i},{lower},{lower + random.randrange(1, 30)},{random.randrange(1, 99)}\n")
    return "id,lower,upper,size\n" + "".join(lines)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text(EXAMPLE)
    return tmp_path / "in.csv"


def is_packed(path: Path, capacity: int) -> bool:
    """Return whether a file has valid offsets, found out without the command."""
    items = read_table(path).items
    offsets = [item.offset for item in items if item.offset is not None]
    return len(offsets) == len(items) and not packing.check_packing(
        PackingProblem(items=items, capacity=capacity), offsets
    )


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_offsets_in_the_file_are_kept_unless_they_are_ignored(
    run: Run, file: Path, tmp_path: Path
) -> None:
    file.write_text("id,lower,upper,size,offset\na,0,3,4,20\nb,0,3,4,\n")
    kept = run("pack", file, "--minimise", "--json")
    assert kept.json["offsets"]["a"] == 20
    assert kept.json["height"] == 24

    anew = run("pack", file, "--minimise", "--ignore-offsets", "-o", "out.csv")
    assert anew.code == 0
    assert is_packed(tmp_path / "out.csv", 8)


@pytest.mark.full
def test_a_limit_without_an_answer_has_its_exit_code(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text(many_buffers())
    limited = ("--node-limit", "1")
    best = run("pack", file, "--minimise", "--json", *limited)
    assert (best.code, best.json["status"], best.json["gap"] > 0) == (0, "feasible", True)

    ended = run("pack", file, "-c", best.json["bound"], *limited, "-o", "out.csv")
    assert (ended.code, ended.out) == (5, "")
    assert f"without offsets inside {best.json['bound']:,} B" in ended.err
    assert "--time-limit" in ended.err
    assert run("pack", file, "--minimise", "-c", best.json["bound"], *limited).code == 5
    assert files_in(tmp_path) == ["in.csv"]


def test_the_same_seed_gives_the_same_file(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_text(many_buffers())
    limited = ("--node-limit", "9000", "--seed", "7")
    for name in ("one.csv", "two.csv"):
        assert run("pack", file, "--minimise", *limited, "-o", name).code == 0
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_offsets_that_the_checker_rejects_are_not_written(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = packing.pack

    def wrong(*arguments: Any) -> Packing:
        return replace(good(*arguments), offsets=(0, 0, 0, 0, 0))

    monkeypatch.setattr(packing, "pack", wrong)
    ended = run("pack", file, "-c", "12", "-o", "out.csv", "--json")

    assert ended.code == 70
    assert ended.json["checked"] is False
    assert ended.json["offsets"] is None
    assert ended.json["violations"][0]["rule"] == "disjoint"
    assert "defect of spmilp" in ended.err
    assert files_in(tmp_path) == ["in.csv"]


def interrupted(answer: Callable[..., Packing], number: signal.Signals) -> Callable[..., Packing]:
    """Return a search that is interrupted, and keeps what it has."""

    def search(*arguments: object) -> Packing:
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 1)
        return replace(answer(*arguments), status=PackingStatus.FEASIBLE, bound=11)

    return search


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_the_best_packing_found(
    number: signal.Signals,
    code: int,
    run: Run,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = interrupted(packing.minimise, number)
    monkeypatch.setattr(packing, "minimise", search)
    ended = run("pack", file, "--minimise", "-o", "out.csv")

    assert ended.code == code
    assert "feasible, interrupted, checked" in ended.out
    assert is_packed(tmp_path / "out.csv", 12)


def test_a_target_that_cannot_be_written_is_an_error(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("pack", file, "-c", "12", "-o", tmp_path).code == 3
    os.mkfifo(tmp_path / "pipe")
    assert run("pack", file, "-c", "12", "-o", tmp_path / "pipe").code == 3
    assert not (tmp_path / "pipe").is_file()


POOLED = (
    "id,lower,upper,size,pools,note,offset\na,0,2,60,,x,\nb,0,1,50,tcm|sram,,\nw,1,2,50,tcm,,end\n"
)
POOLS = ("--pool", "tcm=100", "--pool", "sram=1K,cost=2")


def test_buffers_are_written_with_their_pools_and_read_again(
    run: Run, file: Path, tmp_path: Path
) -> None:
    file.write_text(POOLED)
    ended = run("pack", file, *POOLS, "--minimise", "-o", "out.csv")
    assert ended.code == 0
    assert "optimal" in ended.out
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == [
        "a,0,2,60,sram,x,0",
        "b,0,1,50,tcm,,0",
        "w,1,2,50,tcm,,50",
    ]
    again = run("pack", "out.csv", *POOLS, "--json").json
    assert (again["status"], again["cost"], again["places"]["w"]) == ("optimal", 120, ["tcm", 50])
    assert [pool["height"] for pool in again["pools"]] == [100, 60]


def test_what_fits_into_no_pool_is_said_with_its_own_code(run: Run, file: Path) -> None:
    file.write_text(POOLED)
    ended = run("pack", file, "--pool", "tcm=40", "--pool", "sram=100", "--json")
    assert ended.code == 4
    assert "buffer w of 50 B fits no pool that it may lie in: tcm has 40 B" in ended.err
    assert (ended.json["left_out"], ended.json["least_left_out"]) == (["b", "w"], 100)
    unsaid = run("pack", file, "-c", "1K")
    assert unsaid.code == 3
    assert "buffer b may lie in tcm, sram; say --pool NAME=BYTES" in unsaid.err
    assert "buffer b: no pool 'sram'; there are tcm" in run("pack", file, *POOLS[:2]).err
