"""What ``spmilp solve`` says of its answer."""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spmilp import quantities
from spmilp.cli import output as out

if TYPE_CHECKING:
    from spmilp.export.packed import Footprint
    from spmilp.report.summary import Summary
    from spmilp.result import Result

MOST_CORES = 20
"""Cores that get a row of their own; of more, the table shows the spread."""

MOST_ROWS = 5_000
"""Tasks and transfers of a plan whose footprint is computed without being asked for."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The outcome of the command.

    Parameters
    ----------
    result
        With the wall time of the whole command.
    files
        What was written.
    seconds_to_write
        Wall time that writing the plan took.
    has_time
        For what no tiling can be below, and for the footprint.
    """

    result: "Result"
    files: tuple[Path, ...]
    seconds_to_write: float
    interrupted: bool
    has_time: bool

    @property
    def seconds(self) -> float:
        """Wall time of the command."""
        return self.result.seconds or 0.0

    @property
    def _shows_more(self) -> bool:
        """Whether to compute more; after an interrupt nobody wants to wait."""
        return self.has_time and not self.interrupted

    @cached_property
    def footprint(self) -> "Footprint | None":
        """What the plan takes in a firmware, on machines that are like microcontrollers."""
        from spmilp.export.formats import is_like_microcontroller

        problem, plan = self.result.problem, self.result.plan
        if plan is None or not self._shows_more:
            return None
        if len(problem.tasks) + len(plan.transfers) > MOST_ROWS:
            return None
        return self.result.footprint() if is_like_microcontroller(problem.machine) else None

    def why_late(self, time_limit: float) -> str:
        """Say by how much the limit was exceeded, and what for."""
        return (
            f"the time limit of {quantities.time(time_limit)} was exceeded: it took "
            f"{quantities.time(self.seconds)}, of which {quantities.time(self.seconds_to_write)} "
            f"to write the plan and {quantities.time(self.result.seconds_to_check)} to check it"
        )

    def failure(self) -> str:
        """Say why there is no plan to show."""
        result, violations = self.result, self.result.violations
        if violations:
            lines = [f"  {violation.rule}: {violation.message}" for violation in violations[:10]]
            more = [f"  and {len(violations) - 10} more"] if len(violations) > 10 else []
            kept = f"; the plan is kept in {self.files[-1]}" if self.files else ""
            head = (
                f"the checker rejects the plan of the solver {result.solver} "
                f"({quantities.count(len(violations), 'violation')}). This is a defect of spmilp, "
                f"please report it{kept}"
            )
            return "\n".join([head, *lines, *more])
        return f"{result.status}: {result.reason}" if result.answer.reason else result.reason

    def data(self) -> dict[str, object]:
        """Return the answer for ``--json``; what there is not is null.

        ``gap`` is that of these tiles, to ``bound``, of which ``bound_source`` is the argument.
        ``gap_of_any_tiles`` is the one to ``bound_of_any_tiles``, which no plan of any tiling is
        below. ``tiles_are_fallback`` says that there was no time to compare these with others.
        """
        from spmilp.explaining.text import network_name
        from spmilp.report.summary import Summary

        result, summary, more = self.result, self.result.summary, self._shows_more
        machine = result.problem.machine
        roofline = result.roofline if more else None
        return {
            **(dict.fromkeys(Summary.__slots__) if summary is None else asdict(summary)),
            "network": network_name(result.problem),
            "machine": machine.name,
            "quantity": str(result.problem.objective.first),
            "bound": result.bound,
            "bound_source": result.bound_source,
            "bound_of_any_tiles": result.bound_of_any_tiles if more else None,
            "gap_of_any_tiles": result.gap_of_any_tiles if more else None,
            "tiles_are_fallback": result.tiles_are_fallback,
            "roofline": None if roofline is None else roofline.cycles,
            "footprint": None if self.footprint is None else self.footprint.fields(),
            "unverified": list(machine.unverified),
            "status": str(result.status),
            "reason": result.answer.reason or None,
            "interrupted": self.interrupted,
            "solver": result.solver,
            "seconds": round(self.seconds, 3),
            "seconds_to_check": round(result.seconds_to_check, 3),
            "seconds_to_write": round(self.seconds_to_write, 3),
            "checked": summary is not None,
            "violations": [asdict(found) for found in result.violations],
            "lock": None if result.lock is None else asdict(result.lock),
            "files": [str(file) for file in self.files],
        }

    def print_tables(self, to: Console, summary: "Summary") -> None:
        """Print the figures, the use of the cores, and what was written."""
        from spmilp.report import answer_table

        result, how = self.result, ", interrupted" * self.interrupted
        to.print(answer_table.title(result.problem, result.status, True, how), markup=False)
        rows = result.rows(summary, any_tiles=self._shows_more)
        to.print(out.table(("", "", ""), rows, numbers={1}, show_headings=False))
        to.print()
        to.print(_cores(summary))
        if summary.unverified:
            to.print(f"[yellow]unverified:[/] {escape(_unverified(summary))}", soft_wrap=True)
        lines = [*self.footprint.lines()] if self.footprint else []
        lines += result.lock.lines() if result.lock else ()
        for line in (*lines, *(f"written: {file}" for file in self.files)):
            to.print(escape(line), soft_wrap=True)


def _unverified(summary: "Summary") -> str:
    """Return one line that names the parameters of the machine that no source confirms."""
    from spmilp.machine.read import list_presets

    names = summary.unverified
    count = quantities.count(len(names), "machine parameter")
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = f"; spmilp machines {summary.machine} lists them" * (summary.machine in list_presets())
    return f"{count} ({', '.join(names[:3])}{more}){shown}"


def _cores(summary: "Summary") -> Table:
    """Return a row per core, or the spread over them when they are many."""
    if len(summary.cores) <= MOST_CORES:
        return out.table(
            ("core", "tasks", "busy cycles", "utilisation"),
            [
                (
                    core.core,
                    f"{core.tasks:,}",
                    f"{core.busy:,}",
                    quantities.percent(core.utilisation),
                )
                for core in summary.cores
            ],
            numbers={1, 2, 3},
        )
    shares = sorted(core.utilisation for core in summary.cores)
    spread = (shares[0], sum(shares) / len(shares), shares[-1])
    busy = f"{sum(1 for core in summary.cores if core.tasks)} of {len(shares)}"
    return out.table(
        ("cores in use", "utilisation: least", "mean", "most"),
        [(busy, *(quantities.percent(share) for share in spread))],
        numbers={1, 2, 3},
    )
