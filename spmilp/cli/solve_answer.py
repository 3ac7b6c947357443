"""What ``spmilp solve`` prints of its answer."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spmilp import amounts
from spmilp.cli import output as out

if TYPE_CHECKING:
    from spmilp.export.footprint import Footprint
    from spmilp.report.summary import Summary
    from spmilp.result import Result

MOST_CORES = 20
"""Cores that get a row of their own; of more, the table shows the spread."""


MOST_ROWS = 5_000
"""Tasks and transfers of a plan whose footprint is computed without being asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The outcome of the command.

    Parameters
    ----------
    files
        What was written.
    seconds, seconds_to_write
        Wall time of the command, and of that what writing the plan took.
    shows_roofline
        There is time to compute it.
    """

    result: "Result"
    files: tuple[Path, ...]
    seconds: float
    seconds_to_write: float
    interrupted: bool
    shows_roofline: bool


def show(answer: Answer, *, as_json: bool, is_shown: bool) -> None:
    """Print the answer on stdout, unless it is there already, and what is wrong on stderr."""
    summary = answer.result.summary
    if summary is None:
        out.print_error(_failure(answer))
    if as_json:
        out.print_json(as_object(answer, summary))
    elif summary is not None and not is_shown:
        _print_tables(out.console(), answer, summary)


def late(answer: Answer, time_limit: float) -> str:
    """Say by how much the limit was exceeded, and what for."""
    return (
        f"the time limit of {amounts.time(time_limit)} was exceeded: it took "
        f"{amounts.time(answer.seconds)}, of which {amounts.time(answer.seconds_to_write)} "
        f"to write the plan and {amounts.time(answer.result.seconds_to_check)} to check it"
    )


def _failure(answer: Answer) -> str:
    """Say why there is no plan to show."""
    result, violations = answer.result, answer.result.violations
    if violations:
        lines = [f"  {violation.rule}: {violation.message}" for violation in violations[:10]]
        more = [f"  and {len(violations) - 10} more"] if len(violations) > 10 else []
        kept = f"; the plan is kept in {answer.files[-1]}" if answer.files else ""
        head = (
            f"the checker rejects the plan of the solver {result.solver} "
            f"({amounts.count(len(violations), 'violation')}). This is a defect of spmilp, please "
            f"report it{kept}"
        )
        return "\n".join([head, *lines, *more])
    if result.answer.reason:
        return f"{result.status}: {result.reason}"
    return result.reason


def as_object(answer: Answer, summary: "Summary | None") -> dict[str, object]:
    """Return the answer for ``--json``; what there is not is null."""
    from spmilp.report.summary import Summary, network_name

    result = answer.result
    figures = asdict(summary) if summary is not None else dict.fromkeys(Summary.__slots__)
    roofline, footprint = _roofline(answer), _footprint(answer)
    names = {
        "network": network_name(result.problem),
        "machine": result.problem.machine.name,
        "quantity": str(result.problem.objective.first),
        "bound": result.bound,
        "bound_source": result.bound_source,
        "roofline": None if roofline is None else roofline.cycles,
        "footprint": None if footprint is None else footprint.fields(),
        "unverified": list(result.problem.machine.unverified),
    }
    how = {
        "status": str(result.status),
        "reason": result.answer.reason or None,
        "interrupted": answer.interrupted,
        "solver": result.solver,
        "seconds": round(answer.seconds, 3),
        "seconds_to_check": round(result.seconds_to_check, 3),
        "seconds_to_write": round(answer.seconds_to_write, 3),
        "checked": summary is not None,
        "violations": [
            {"rule": found.rule, "objects": list(found.objects), "message": found.message}
            for found in result.violations
        ],
        "lock": None if result.lock is None else asdict(result.lock),
        "files": [str(file) for file in answer.files],
    }
    return figures | names | how


def _roofline(answer: Answer) -> Any:
    """Return the roofline; after an interrupt nobody wants to wait for it."""
    if answer.interrupted or not answer.shows_roofline:
        return None
    return answer.result.roofline


def _footprint(answer: Answer) -> "Footprint | None":
    """Return what the plan takes in a firmware, on machines that are like microcontrollers."""
    from spmilp.export.request import is_like_microcontroller

    problem, plan = answer.result.problem, answer.result.plan
    if answer.interrupted or not answer.shows_roofline or plan is None:
        return None
    if len(problem.tasks) + len(plan.transfers) > MOST_ROWS:
        return None
    return answer.result.footprint() if is_like_microcontroller(problem.machine) else None


def _print_tables(to: Console, answer: Answer, summary: "Summary") -> None:
    from spmilp.report import answer_table

    result = answer.result
    how = ", interrupted" if answer.interrupted else ""
    to.print(answer_table.title(result.problem, result.status, True, how), markup=False)
    rows = answer_table.rows(summary, _roofline(answer), result.solver, answer.seconds)
    to.print(out.table(("", "", ""), rows, numbers={1}, show_headings=False))
    to.print()
    to.print(_cores(summary))
    if summary.unverified:
        to.print(f"[yellow]unverified:[/] {escape(_unverified(summary))}", soft_wrap=True)
    footprint = _footprint(answer)
    for line in footprint.lines() if footprint else ():
        to.print(escape(line), soft_wrap=True)
    for line in result.lock.lines() if result.lock else ():
        to.print(escape(line), soft_wrap=True)
    for file in answer.files:
        to.print(f"written: {escape(str(file))}", soft_wrap=True)


def _unverified(summary: "Summary") -> str:
    """Return one line that names the parameters of the machine that no source confirms."""
    from spmilp.machine.read import list_presets

    names = summary.unverified
    count = amounts.count(len(names), "machine parameter")
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = f"; spmilp machines {summary.machine} lists them" * (summary.machine in list_presets())
    return f"{count} ({', '.join(names[:3])}{more}){shown}"


def _cores(summary: "Summary") -> Table:
    """Return a row per core, or the spread over them when they are many."""
    if len(summary.cores) <= MOST_CORES:
        return out.table(
            ("core", "tasks", "busy cycles", "utilisation"),
            [
                (core.core, f"{core.tasks:,}", f"{core.busy:,}", amounts.percent(core.utilisation))
                for core in summary.cores
            ],
            numbers={1, 2, 3},
        )
    shares = sorted(core.utilisation for core in summary.cores)
    spread = (shares[0], sum(shares) / len(shares), shares[-1])
    busy = f"{sum(1 for core in summary.cores if core.tasks)} of {len(shares)}"
    return out.table(
        ("cores in use", "utilisation: least", "mean", "most"),
        [(busy, *(amounts.percent(share) for share in spread))],
        numbers={1, 2, 3},
    )
