"""``spmilp convert``: problems from and to plain scheduling and packing formats."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp import amounts
from spmilp.cli import options as read
from spmilp.cli.interrupts import writing
from spmilp.cli.output import print_line
from spmilp.errors import SpmilpError

if TYPE_CHECKING:
    from spmilp.problem.problem import Problem


class Format(StrEnum):
    """Formats of files."""

    PROBLEM = "problem"
    FJSP = "fjsp"
    MINIMALLOC = "minimalloc"


ENDINGS = {
    ".json": Format.PROBLEM,
    ".txt": Format.FJSP,
    ".fjs": Format.FJSP,
    ".csv": Format.MINIMALLOC,
}


def convert(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What to convert.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="The file to write.", show_default=False
        ),
    ],
    source: Annotated[
        Format | None,
        typer.Option(
            "--from", help="What FILE holds.", show_default="by its ending: .json .txt .fjs .csv"
        ),
    ] = None,
    target: Annotated[
        Format | None,
        typer.Option("--to", help="What to write.", show_default="by the ending of OUT"),
    ] = None,
    capacity: Annotated[
        int | None,
        typer.Option(
            "--capacity",
            "-c",
            parser=read.byte_count,
            metavar="BYTES",
            help="Bytes of the memory (from minimalloc): 1048576, 0x100000, 64K, 1MiB.",
            show_default="room for all buffers",
        ),
    ] = None,
) -> None:
    """Convert a flexible job shop or a list of buffers with lifetimes to a problem, or back.

    fjsp: flexible job shop; a problem without data whose tasks are chains.
    minimalloc: CSV with id,lower,upper,size; a problem that leaves only
    addresses to decide. For the lifetimes of a plan see spmilp export.
    """
    from spmilp.files import write_atomically
    from spmilp.problem.write import write_problem

    given = source or _by_ending(file, "--from")
    wanted = target or _by_ending(output, "--to")
    if capacity is not None and given is not Format.MINIMALLOC:
        raise typer.BadParameter(f"--capacity is for lists of buffers, but {file} is {given}")
    if given is Format.PROBLEM and wanted is not Format.PROBLEM:
        from spmilp.problem.read import read_problem

        problem = read_problem(file)
        text = _text_of(wanted)(problem)
        with writing(output):
            write_atomically(output, text)
    elif given is not Format.PROBLEM and wanted is Format.PROBLEM:
        problem = _read_job_shop(file) if given is Format.FJSP else _read_buffers(file, capacity)
        try:
            with writing(output):
                write_problem(problem, output)
        except ValueError as error:
            raise SpmilpError(f"{file}: cannot be a problem: {error}") from error
    else:
        raise typer.BadParameter(
            f"--from {given} --to {wanted}: one of them must be {Format.PROBLEM}, the other not"
        )
    print_line(f"{output}: {_description(problem)}")


def _by_ending(file: Path, option: str) -> Format:
    if file.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(
            f"{file}: its ending does not say what it is; give {option} {'|'.join(Format)}"
        )
    return ENDINGS[file.suffix.lower()]


def _text_of(wanted: Format) -> "Callable[[Problem], str]":
    if wanted is Format.FJSP:
        from spmilp.problem.convert.job_shop import job_shop_text

        return job_shop_text
    return _buffers_text


def _read_job_shop(file: Path) -> "Problem":
    from spmilp.problem.convert.job_shop import read_job_shop

    return read_job_shop(file)


def _read_buffers(file: Path, capacity: int | None) -> "Problem":
    """Read a list of buffers, which a problem can hold as far as lifetimes and sizes go."""
    from spmilp.packing.minimalloc import read_table
    from spmilp.problem.convert.lifetimes import Lifetime, problem_of_lifetimes

    table = read_table(file)
    for column, pairs in (("apart", table.apart), ("together", table.together)):
        if pairs:
            a, b = (table.ids[row] for row in pairs[0])
            raise SpmilpError(
                f"{file}: {a} and {b} must lie {column}, which a problem cannot say; leave the "
                f"column {column} out"
            )
    alignments = {item.alignment for item in table.items} or {1}
    alignment = max(alignments)
    if len(alignments) > 1 or alignment & (alignment - 1):
        raise SpmilpError(
            f"{file}: has alignments of {', '.join(map(str, sorted(alignments)))} B; a memory has "
            "one, a power of 2"
        )
    lifetimes = []
    for name, item in zip(table.ids, table.items, strict=True):
        if item.offset is not None:
            raise SpmilpError(
                f"{file}: id {name} has a fixed offset of {item.offset} B, which a problem cannot "
                "say; leave the column out"
            )
        if len(item.lifetimes) > 1:
            raise SpmilpError(
                f"{file}: id {name} has {len(item.lifetimes)} lifetimes at one offset, which a "
                "problem cannot say; leave the gaps out"
            )
        ((start, end),) = item.lifetimes
        lifetimes.append(Lifetime(name=name, start=start, end=end, bytes=item.size))
    return problem_of_lifetimes(file.stem, lifetimes, capacity, alignment)


def _buffers_text(problem: "Problem") -> str:
    import csv
    import io

    from spmilp.export.names import no_formula
    from spmilp.problem.convert.lifetimes import lifetimes_of_problem

    lifetimes = lifetimes_of_problem(problem)
    alignment = problem.machine.memories[problem.machine.cores[0].memory].alignment
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    aligned = alignment > 1
    writer.writerow(("id", "lower", "upper", "size", *(("alignment",) if aligned else ())))
    names = [one.name for one in lifetimes]
    plain = all(name and name.isprintable() and name == no_formula(name) for name in names)
    if len(set(names)) < len(names) or not plain:
        names = [f"b{number}" for number in range(len(names))]
    for name, one in zip(names, lifetimes, strict=True):
        row = (name, one.start, one.end, one.bytes)
        writer.writerow((*row, alignment) if aligned else row)
    return text.getvalue()


def _description(problem: "Problem") -> str:

    tasks, cores = len(problem.tasks), len(problem.machine.cores)
    return f"{amounts.count(tasks, 'task')} on {amounts.count(cores, 'core')}, " + amounts.count(
        len(problem.buffers), "buffer"
    )
