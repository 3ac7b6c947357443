"""How ``spmilp solve`` shows its answer: tables for people, one object for programs."""

from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spmilp.bounds.roofline import Roofline
from spmilp.cli import output as out
from spmilp.machine.read import list_presets
from spmilp.pipeline import Mapped
from spmilp.problem.objective import Quantity
from spmilp.report.summary import Summary, network_name, summarise

MOST_CORES = 20
"""Cores that get a row of their own; of more, the table shows the spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the command has found out.

    Parameters
    ----------
    summary
        The figures of the plan; ``None`` unless there is one that the checker accepts.
    roofline
        The network's bound for every tiling; ``None`` when only the problem is known, and after an
        interrupt, when nobody wants to wait for it.
    files
        What was written.
    seconds
        Wall time of the command.
    """

    mapped: Mapped
    summary: Summary | None
    roofline: Roofline | None
    files: tuple[Path, ...]
    solver: str
    seconds: float
    interrupted: bool


def figures_of(mapped: Mapped) -> Summary | None:
    """Return the figures of the plan; ``None`` unless there is one that the checker accepts."""
    if mapped.plan is None:
        return None
    result = mapped.result
    return summarise(mapped.problem, mapped.plan, result.bound, result.bound_source)


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print the answer on stdout, and what is wrong on stderr."""
    summary = answer.summary
    if summary is None:
        out.print_error(failure(answer))
    if as_json:
        out.print_json(as_object(answer, summary))
    elif summary is not None:
        _print_tables(out.console(), answer, summary)


def failure(answer: Answer) -> str:
    """Say why there is no plan to show."""
    result, violations = answer.mapped.result, answer.mapped.violations
    if violations:
        lines = [f"  {violation.rule}: {violation.message}" for violation in violations[:10]]
        more = [f"  and {len(violations) - 10} more"] if len(violations) > 10 else []
        kept = f"; the plan is kept in {answer.files[-1]}" if answer.files else ""
        head = (
            f"the checker rejects the plan of the solver {solver_of(answer)} "
            f"({out.count(len(violations), 'violation')}). This is a defect of spmilp, please "
            f"report it{kept}"
        )
        return "\n".join([head, *lines, *more])
    if result.reason:
        return f"{result.status}: {result.reason}"
    stop = "interrupted" if answer.interrupted else "limit reached"
    return (
        f"{stop} without a plan; bound {result.bound:,} ({result.bound_source}). "
        "Give more time (--time-limit), or scratchpads more bytes in the machine file."
    )


def as_object(answer: Answer, summary: Summary | None) -> dict[str, object]:
    """Return the answer for ``--json``; what there is not is null."""
    mapped = answer.mapped
    figures = asdict(summary) if summary is not None else dict.fromkeys(Summary.__slots__)
    names = {
        "network": network_name(mapped.problem),
        "machine": mapped.problem.machine.name,
        "quantity": str(mapped.problem.objective.first),
        "bound": mapped.result.bound,
        "bound_source": mapped.result.bound_source,
        "roofline": answer.roofline.cycles if answer.roofline is not None else None,
        "unverified": list(mapped.problem.machine.unverified),
    }
    how = {
        "status": str(mapped.result.status),
        "reason": mapped.result.reason or None,
        "interrupted": answer.interrupted,
        "solver": solver_of(answer),
        "seconds": round(answer.seconds, 3),
        "checked": summary is not None,
        "violations": [
            {"rule": found.rule, "objects": list(found.objects), "message": found.message}
            for found in mapped.violations
        ],
        "files": [str(file) for file in answer.files],
    }
    return figures | names | how


def solver_of(answer: Answer) -> str:
    """Return the name of the solver whose plan it is; of the one asked, when there is no plan."""
    plan = answer.mapped.result.plan
    return plan.solver if plan is not None else answer.solver


def _print_tables(to: Console, answer: Answer, summary: Summary) -> None:
    status = answer.mapped.result.status
    how = ", interrupted" if answer.interrupted else ""
    cores = out.count(len(summary.cores), "core")
    to.print(
        f"[bold]{escape(summary.network)}[/] on [bold]{escape(summary.machine)}[/] ({cores}): "
        f"{status}{how}, [green]checked[/]"
    )
    to.print(_figures(answer, summary))
    to.print()
    to.print(_cores(summary))
    if summary.unverified:
        to.print(f"[yellow]unverified:[/] {escape(_unverified(summary))}", soft_wrap=True)
    for file in answer.files:
        to.print(f"written: {escape(str(file))}", soft_wrap=True)


def _unverified(summary: Summary) -> str:
    """Return one line that names the parameters of the machine that no source confirms."""
    names, count = summary.unverified, out.count(len(summary.unverified), "machine parameter")
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = f"; spmilp machines {summary.machine} lists them" * (summary.machine in list_presets())
    return f"{count} ({', '.join(names[:3])}{more}){shown}"


def _figures(answer: Answer, summary: Summary) -> Table:
    """Return the figures of the whole plan, each with what it is to be compared with."""
    rows = [
        ("makespan", f"{summary.makespan:,} cycles", _as_time(answer, summary)),
        *_objective(summary),
        ("lower bound", _quantity(summary, summary.bound), summary.bound_source),
        *_roofline(answer),
        ("gap", out.percent(summary.gap), "optimal" if summary.gap == 0 else ""),
        ("DRAM traffic", out.size(summary.dram_traffic), _against_compulsory(summary)),
        ("peak SPM", out.size(summary.peak_spm), _against_capacity(summary)),
        *_energy(summary),
        ("tasks", f"{summary.tasks:,}", ""),
        ("transfers", f"{summary.transfers:,}", ""),
        ("solver", solver_of(answer), f"{answer.seconds:.1f} s in all"),
    ]
    return out.table(("", "", ""), rows, numbers={1}, show_headings=False)


def _objective(summary: Summary) -> list[tuple[str, str, str]]:
    if summary.quantity is Quantity.MAKESPAN:
        return []
    return [("objective", _quantity(summary, summary.objective), summary.quantity.value)]


def _energy(summary: Summary) -> list[tuple[str, str, str]]:
    """Show the energy, unless the machine states none."""
    if not summary.energy:
        return []
    return [("energy", f"{summary.energy / 1e9:,.3f} µJ", "of what the machine states")]


def _roofline(answer: Answer) -> list[tuple[str, str, str]]:
    """Show how fast any tiling could be, for a bad tiling hides behind its own bound."""
    line = answer.roofline
    if line is None:
        return []
    why = f"{line.bound_by}, whatever the tiles"
    return [("roofline", f"{line.cycles:,} cycles", why)]


def _quantity(summary: Summary, value: int) -> str:
    units = {Quantity.MAKESPAN: "cycles", Quantity.ENERGY: "fJ"}
    return f"{value:,} {units.get(summary.quantity, 'B')}"


def _as_time(answer: Answer, summary: Summary) -> str:
    hertz = answer.mapped.problem.machine.frequency
    if hertz is None or summary.makespan_seconds is None:
        return ""
    return f"{out.time(summary.makespan_seconds)} at {out.frequency(hertz)}"


def _against_compulsory(summary: Summary) -> str:
    compulsory = summary.compulsory_dram_traffic
    if not compulsory:
        return "none is compulsory"
    return f"{summary.dram_traffic / compulsory:.2f} × compulsory {out.size(compulsory)}"


def _against_capacity(summary: Summary) -> str:
    fullest = summary.fullest
    if fullest is None:
        return ""
    share = out.percent(fullest.peak / fullest.capacity)
    return f"{share} of {out.size(fullest.capacity)} in {fullest.memory}"


def _cores(summary: Summary) -> Table:
    """Return a row per core, or the spread over them when they are many."""
    if len(summary.cores) <= MOST_CORES:
        return out.table(
            ("core", "tasks", "busy cycles", "utilisation"),
            [
                (core.core, f"{core.tasks:,}", f"{core.busy:,}", out.percent(core.utilisation))
                for core in summary.cores
            ],
            numbers={1, 2, 3},
        )
    shares = sorted(core.utilisation for core in summary.cores)
    spread = (shares[0], sum(shares) / len(shares), shares[-1])
    busy = f"{sum(1 for core in summary.cores if core.tasks)} of {len(shares)}"
    return out.table(
        ("cores in use", "utilisation: least", "mean", "most"),
        [(busy, *(out.percent(share) for share in spread))],
        numbers={1, 2, 3},
    )
