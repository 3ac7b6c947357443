"""``spmilp pack``: valid offsets, optimal heights, and proofs that there are none."""

import csv
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.acceptance.doors import YARDSTICKS, Run

MINIMALLOC = Path(__file__).parents[3] / "shared" / "data" / "minimalloc"
CAPACITY = 1048576
EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
FRAGMENTED = "id,lower,upper,size,gaps\na,0,3,4,1-2\nb,0,2,4,\nc,1,3,4,\nelsewhere,5,7,2,\n"


def height(file: Path) -> int:
    """Return the height of a packed file in which no two buffers share a byte while both live."""
    rows = list(csv.DictReader(file.open()))
    boxes = [tuple(int(row[name]) for name in ("lower", "upper", "size", "offset")) for row in rows]
    for number, (low, up, size, at) in enumerate(boxes):
        for low2, up2, size2, at2 in boxes[:number]:
            apart = up <= low2 or up2 <= low or at + size <= at2 or at2 + size2 <= at
            assert apart, rows[number]
    return max(size + at for _, _, size, at in boxes)


def least(boxes: Sequence[tuple[int, int, int]]) -> int:
    """Return the least height by trying all orders of placing each buffer as low as it can be."""
    best = sum(size for _, _, size in boxes)

    def place(rest: tuple[int, ...], placed: tuple[tuple[int, int], ...], high: int) -> None:
        nonlocal best
        if high >= best:
            return
        if not rest:
            best = high
        for one in rest:
            low, up, size = boxes[one]
            taken = sorted(
                (at, at + boxes[other][2])
                for other, at in placed
                if boxes[other][0] < up and low < boxes[other][1]
            )
            at = 0
            for start, end in taken:
                if at + size <= start:
                    break
                at = max(at, end)
            left = tuple(each for each in rest if each != one)
            place(left, (*placed, (one, at)), max(high, at + size))

    place(tuple(range(len(boxes))), (), 0)
    return best


def test_the_least_height_is_that_of_all_orders(run: Run, tmp_path: Path) -> None:
    random = Random(5)
    for turn in range(6):
        boxes = []
        for _ in range(7):
            low = random.randrange(8)
            boxes.append((low, low + random.randrange(1, 6), random.randrange(1, 9)))
        lines = [f"b{n},{low},{up},{size}\n" for n, (low, up, size) in enumerate(boxes)]
        (tmp_path / "in.csv").write_text("id,lower,upper,size\n" + "".join(lines))
        ended = run("pack", "in.csv", "--minimise", "-o", "out.csv", "--json")
        assert (ended.code, ended.json["status"]) == (0, "optimal")
        best = ended.json["height"]
        assert best == ended.json["bound"] == height(tmp_path / "out.csv") == least(boxes), turn
        less = run("pack", "in.csv", "--capacity", best - 1, "--json")
        assert (less.code, less.json["status"]) == (4, "infeasible")


def test_a_packed_file_is_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(EXAMPLE)
    less = run("pack", "in.csv", "--capacity", "11")
    assert (less.code, less.out) == (4, "")
    assert "12 B" in less.err
    assert "11 B" in less.err
    assert run("pack", "in.csv", "--capacity", "12", "-o", "packed.csv").code == 0
    assert height(tmp_path / "packed.csv") == 12
    assert run("pack", "packed.csv", "--capacity", "12").code == 0
    wrong = (tmp_path / "packed.csv").read_text().splitlines()
    wrong = [wrong[0], *(f"{line.rpartition(',')[0]},0" for line in wrong[1:])]
    (tmp_path / "wrong.csv").write_text("\n".join(wrong) + "\n")
    ended = run("pack", "wrong.csv", "--capacity", "12")
    assert ended.code not in (0, 70)
    assert "b1" in ended.err


def test_reserved_bytes_stay_free(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(EXAMPLE)
    ended = run("pack", "in.csv", "--capacity", "20", "--reserve", "0-8", "-o", "out.csv")
    assert ended.code == 0
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert min(int(row["offset"]) for row in rows) >= 8


def test_gaps_in_lifetimes_are_heeded(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(FRAGMENTED)
    found = run("pack", "in.csv", "--minimise", "--json").json
    assert (found["status"], found["live_bytes"]) == ("optimal", 8)
    assert found["height"] == 12


def packed(name: str, run: Run, folder: Path) -> dict[str, object]:
    """Pack one of MiniMalloc's files, or skip where they are not."""
    file = MINIMALLOC / f"{name}.csv"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    limits = ("--capacity", CAPACITY, "--time-limit", "none", "-o", "out.csv", "--json")
    found: dict[str, object] = run("pack", file, *limits).json
    assert found["checked"] is True
    assert height(folder / "out.csv") == found["height"]
    return found


@pytest.mark.parametrize("name", ["G.1048576", "K.1048576"])
def test_two_problems_of_minimalloc_are_packed(name: str, run: Run, tmp_path: Path) -> None:
    assert packed(name, run, tmp_path)["height"] == CAPACITY


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(YARDSTICKS["packing"]))
def test_the_search_takes_the_nodes_that_it_took_before(
    name: str, run: Run, tmp_path: Path
) -> None:
    found, before = packed(name, run, tmp_path), YARDSTICKS["packing"][name]
    assert {key: found[key] for key in before} == before
