"""``spmilp check``: does a plan obey every rule?"""

from dataclasses import asdict
from typing import Annotated

import typer

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.errors import ExitCode


def check(
    plan: arguments.PlanFile,
    problem: arguments.ProblemFile = None,
    with_commands: Annotated[
        bool,
        typer.Option(
            "--commands",
            help="Also derive the command lists and prove that they neither race nor deadlock.",
        ),
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Check a plan against its problem, rule by rule, and list every violation.

    The rules are written down in docs/format.md, those of command lists in
    docs/commands.md; exit code 7 when one is broken.
    """
    from spmilp.checker.check import check as violations_of
    from spmilp.plan.read import open_pair

    opened, answer = open_pair(plan, problem)
    if not answer.problem_sha256:
        out.print_warning(
            f"{plan}: meta.problem_sha256 is missing or empty: nothing says that the plan was made "
            f"for the problem {opened.name}"
        )
    violations = violations_of(opened, answer)
    commands = None
    if with_commands and not violations:
        from spmilp.checker.races import check_commands
        from spmilp.commands.build import build_commands
        from spmilp.commands.commands import summary_of

        lists = build_commands(opened, answer)
        violations, commands = check_commands(opened, answer, lists), summary_of(lists)
    if as_json:
        out.print_json(
            {
                "valid": not violations,
                "plan": str(plan),
                "problem": opened.name,
                "names_problem": bool(answer.problem_sha256),
                "machine": opened.machine.name,
                "tasks": len(answer.placements),
                "residencies": len(answer.residencies),
                "transfers": len(answer.transfers),
                "commands": None if commands is None else asdict(commands),
                "violations": [
                    {"rule": found.rule, "objects": list(found.objects), "message": found.message}
                    for found in violations
                ],
            }
        )
    else:
        for found in violations:
            out.print_line(f"{found.rule}: {found.message}")
        count = quantities.count(len(violations), "violation")
        size = (
            f"{quantities.count(len(answer.placements), 'task')}, "
            f"{quantities.count(len(answer.transfers), 'transfer')}"
        )
        out.print_line(f"{plan}: {count}" if violations else f"{plan}: valid ({size})")
        if commands is not None and not violations:
            out.print_line(
                f"commands: {quantities.count(commands.waits, 'wait')}, "
                f"{quantities.count(commands.signals, 'signal')}, "
                f"{quantities.count(commands.events, 'event')} "
                f"({commands.scheme}); no race, no deadlock"
            )
    if violations:
        raise typer.Exit(ExitCode.PLAN_INVALID)
