"""``spmilp check`` and ``spmilp replay``: does a plan obey every rule, and compute rightly?"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.errors import ExitCode
from spmilp.quantities import count


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
    from spmilp.plan.file import open_pair

    opened, answer = open_pair(plan, problem)
    if not answer.problem_sha256:
        out.print_warning(
            f"{plan}: meta.problem_sha256 is missing or empty: nothing says that the plan was made "
            f"for the problem {opened.name}"
        )
    violations, commands = violations_of(opened, answer), None
    if with_commands and not violations:
        from spmilp.checker.races import check_commands
        from spmilp.commands.build import build_commands
        from spmilp.commands.commands import summary_of

        lists = build_commands(opened, answer)
        violations, commands = check_commands(opened, answer, lists), summary_of(lists)
    tasks, transfers = len(answer.placements), len(answer.transfers)
    lines = [f"{found.rule}: {found.message}" for found in violations]
    size = f"{count(tasks, 'task')}, {count(transfers, 'transfer')}"
    said = count(len(violations), "violation") if violations else f"valid ({size})"
    lines.append(f"{plan}: {said}")
    if commands is not None and not violations:
        lines.append(
            f"commands: {count(commands.waits, 'wait')}, {count(commands.signals, 'signal')}, "
            f"{count(commands.events, 'event')} ({commands.scheme}); no race, no deadlock"
        )
    data = {
        "valid": not violations,
        "plan": str(plan),
        "problem": opened.name,
        "names_problem": bool(answer.problem_sha256),
        "machine": opened.machine.name,
        "tasks": tasks,
        "residencies": len(answer.residencies),
        "transfers": transfers,
        "commands": None if commands is None else asdict(commands),
        "violations": [asdict(found) for found in violations],
    }
    out.print_answer(data, lines, as_json=as_json)
    if violations:
        raise typer.Exit(ExitCode.PLAN_INVALID)


def replay(
    plan: arguments.PlanFile,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL.onnx", help="The model that it was made for.", show_default=False
        ),
    ],
    problem: arguments.ProblemFile = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE.npz",
            help="Values of the network's inputs, one array each, and perhaps of its outputs.",
            show_default="random values",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random values.")] = 0,
    delays: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="SEED",
            help="Run it also by its command lists, with random delays from this seed on.",
            show_default="no delays",
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Runs with random delays, each with a seed of its own.")
    ] = 1,
    dim: arguments.Dim = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Run a plan on real numbers and compare its outputs with onnxruntime's.

    Exit code 7 when an output differs by more than the tolerance, when the plan
    reads bytes that are not there, or when delays change an output.
    """
    from spmilp.checker.values.compare import replay_plan
    from spmilp.plan.file import open_pair

    delay_seeds = range(0) if delays is None else range(delays, delays + runs)
    found = replay_plan(
        *open_pair(plan, problem),
        model,
        dims=arguments.dimensions(dim or ()),
        values=values,
        seed=seed,
        delay_seeds=delay_seeds,
    )
    within = all(each.within for each in found)
    if as_json:
        outputs = [
            {**asdict(each), "within": each.within, "absolute": out.finite(each.absolute)}
            | {"relative": out.finite(each.relative)}
            for each in found
        ]
        answer = {"plan": str(plan), "within": within, "delayed_runs": len(delay_seeds)}
        out.print_json({**answer, "outputs": outputs})
    else:
        rows = [
            (
                each.name,
                "x".join(map(str, each.shape)),
                each.dtype,
                *(f"{number:.3g}" for number in (each.absolute, each.relative, each.allowed)),
                "within" if each.within else "OUTSIDE",
            )
            for each in found
        ]
        headings = ("output", "shape", "type", "largest difference", "relative", "allowed", "")
        out.console().print(out.table(headings, rows, numbers={3, 4, 5}))
        if delay_seeds:
            delayed = count(len(delay_seeds), "run")
            out.print_line(f"{delayed} with random delays: the same outputs, bit for bit")
    if not within:
        raise typer.Exit(ExitCode.PLAN_INVALID)
