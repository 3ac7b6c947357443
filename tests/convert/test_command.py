"""``spmilp convert`` as a user runs it."""

from pathlib import Path

import pytest

from cli.running import Run
from spmilp.problem.read import read_problem

SHOP = "2 2\n1 2 1 3 2 4\n2 1 1 2 1 2 5\n"
BUFFERS = "id,lower,upper,size\nx,0,4,8\ny,2,6,4\n"


def test_a_job_shop_becomes_a_problem_that_solve_takes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text(SHOP)

    ended = run("convert", "shop.txt", "--from", "fjsp", "-o", "problem.json")

    assert ended.code == 0
    assert ended.out == "problem.json: 3 tasks on 2 cores, 0 buffers\n"
    # Job 2 takes 2 on machine 1, then 5 on machine 2; job 1 follows on machine 1.
    solved = run("solve", "problem.json", "--solver", "bruteforce", "--json")
    assert solved.json["makespan"] == 7
    assert solved.json["status"] == "optimal"


def test_a_problem_becomes_a_job_shop_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text(SHOP)
    run("convert", "shop.txt", "-o", "problem.json")

    ended = run("convert", "problem.json", "-o", "again.fjs")

    assert ended.code == 0
    assert (tmp_path / "again.fjs").read_text() == SHOP.replace("2 2\n", "2 2 1.33\n", 1)


def test_buffers_become_a_problem_and_come_back(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(BUFFERS)

    run("convert", "in.csv", "-o", "problem.json", "--capacity", "1K")
    ended = run("convert", "problem.json", "--to", "minimalloc", "-o", "out.csv")

    assert ended.code == 0
    assert (tmp_path / "out.csv").read_text() == BUFFERS
    (memory,) = read_problem(tmp_path / "problem.json").machine.memories
    assert memory.size == 1024


def test_one_alignment_is_that_of_the_memory(run: Run, tmp_path: Path) -> None:
    aligned = "id,lower,upper,size,alignment\nx,0,4,8,16\ny,2,6,4,16\n"
    (tmp_path / "in.csv").write_text(aligned)

    run("convert", "in.csv", "-o", "problem.json")
    run("convert", "problem.json", "-o", "out.csv")

    assert (tmp_path / "out.csv").read_text() == aligned


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,lower,upper,size\nx,0,4\n", "in.csv, line 2: 3 cells, but the first line has 4"),
        ("id,lower,upper,size,offset\nx,0,4,8,16\n", "id x has a fixed offset of 16 B"),
        ("id,lower,upper,size,gaps\nx,0,9,8,3-5\n", "id x has 2 lifetimes at one offset"),
        ("id,lower,upper,size,alignment\nx,0,9,8,2\ny,0,9,8,4\n", "alignments of 2, 4 B"),
        ("id,lower,upper,size\n", "has no buffers"),
        ("id,lower,upper,size\nx,0,999999999999999999,8\n", "cannot be a problem"),
    ],
)
def test_buffers_that_a_problem_cannot_hold_are_refused(
    run: Run, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "in.csv").write_text(content)

    ended = run("convert", "in.csv", "-o", "problem.json")

    assert ended.code == 3
    assert message in ended.err.replace("\n", " ")
    assert not (tmp_path / "problem.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shop.txt", "-o", "out.csv"), "one of them must be problem"),
        (("shop.txt", "-o", "out"), "give --to"),
        (("shop", "-o", "out.json"), "give --from"),
        (("shop.txt", "-o", "out.json", "-c", "64K"), "--capacity is for lists of buffers"),
    ],
)
def test_wrong_usage_says_what_to_give(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "shop.txt").write_text(SHOP)

    ended = run("convert", *arguments)

    assert ended.code == 2
    assert message in " ".join(ended.err.replace("│", " ").split())


@pytest.mark.parametrize("name", ["x", "=1+1"])
def test_names_that_csv_cannot_tell_apart_or_may_compute_become_numbers(
    name: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text(BUFFERS)
    run("convert", "in.csv", "-o", "problem.json")
    text = (tmp_path / "problem.json").read_text().replace('"name": "y"', f'"name": "{name}"')
    (tmp_path / "problem.json").write_text(text)

    run("convert", "problem.json", "-o", "out.csv")

    assert (tmp_path / "out.csv").read_text() == "id,lower,upper,size\nb0,0,4,8\nb1,2,6,4\n"
