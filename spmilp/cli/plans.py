"""``spmilp check``, ``replay``, ``report``, ``explain`` and ``export``: plans that are there."""

import json
import time
from collections import Counter
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import RenderableType

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb
from spmilp.cli.interrupts import interrupts_noted
from spmilp.errors import ExitCode
from spmilp.quantities import count

if TYPE_CHECKING:
    from spmilp.checker.violation import Violation
    from spmilp.plan.plan import Plan
    from spmilp.problem.problem import Problem
    from spmilp.result import Result

LOG = "log.jsonl"
"""The log of a search, beside its plan."""

MOST_FILES = 10
"""Files of an export that are listed one by one."""


@verb(with_commands=option(name="--commands"))
def check(
    plan: Path, problem: Path | None = None, with_commands: bool = False, as_json: bool = False
) -> None:
    """Check a plan against its problem, rule by rule, and list every violation.

    The rules are written down in docs/format.md, those of command lists in
    docs/commands.md; exit code 7 when one is broken.

    Parameters
    ----------
    with_commands
        Also derive the command lists and prove that they neither race nor deadlock.
    """
    from spmilp.checker.check import check as violations_of
    from spmilp.explaining.streams import network_data, network_rows, stream_data, stream_rows
    from spmilp.plan.file import open_pair
    from spmilp.problem.objective import Quantity
    from spmilp.report.summary import as_text

    opened, answer = open_pair(plan, problem)
    if not answer.problem_sha256:
        out.print_warning(
            f"{plan}: meta.problem_sha256 is missing or empty: nothing says that the plan was made "
            f"for the problem {opened.name}"
        )
    violations, commands = violations_of(opened, answer), None
    if with_commands and not violations:
        commands, violations = _proven(opened, answer)
    tasks, transfers = len(answer.placements), len(answer.transfers)
    lines = [f"{found.rule}: {found.message}" for found in violations]
    size = f"{count(tasks, 'task')}, {count(transfers, 'transfer')}"
    if answer.stream is not None:
        size += f"; a stream, period {answer.stream.period:,}, latency {answer.claim.makespan:,}"
    said = count(len(violations), "violation") if violations else f"valid ({size})"
    lines.append(f"{plan}: {said}")
    if commands is not None and not violations:
        of = "" if answer.stream is None else f" of {commands['inferences']} inferences in a loop"
        lines.append(
            f"commands{of}: {count(commands['waits'], 'wait')}, "
            f"{count(commands['signals'], 'signal')}, {count(commands['events'], 'event')} "
            f"({commands['scheme']}); no race, no deadlock"
        )
    if answer.stream is not None and not violations:
        rows = [*stream_rows(opened, answer, answer.stream), *network_rows(opened, answer)]
        if opened.objective.first is Quantity.PERIOD:
            rows.append(("bound", f"{answer.claim.bound:,} cycles", answer.claim.bound_source))
        lines.append(as_text(f"{plan}: a stream", rows))
    data = {
        "valid": not violations,
        "plan": str(plan),
        "problem": opened.name,
        "names_problem": bool(answer.problem_sha256),
        "machine": opened.machine.name,
        "tasks": tasks,
        "residencies": len(answer.residencies),
        "transfers": transfers,
        "commands": commands,
        "stream": None if violations else stream_data(opened, answer),
        "networks": None if violations else network_data(opened, answer),
        "violations": [asdict(found) for found in violations],
    }
    out.print_answer(data, lines, as_json=as_json)
    if violations:
        raise typer.Exit(ExitCode.PLAN_INVALID)


def _proven(problem: "Problem", plan: "Plan") -> tuple[dict[str, Any], tuple["Violation", ...]]:
    """Return what there is in a plan's command lists, and what their proof finds wrong."""
    from spmilp.checker.races import check_commands
    from spmilp.commands.build import build_commands
    from spmilp.commands.loop import build_stream_commands, enough_to_prove, in_turns
    from spmilp.plan.running import running

    kinds: Counter[str] = Counter()
    if plan.stream is None:
        lists, inferences = build_commands(problem, plan), 1
        own = lists
        violations = check_commands(problem, plan, lists)
    else:
        made = build_stream_commands(problem, plan)
        inferences = enough_to_prove(plan, plan.stream, made.highest)
        runs = running(problem, plan, inferences)
        lists = in_turns(made, runs, inferences)
        own = made.prologue
        kinds.update(type(each).__name__ for one in made.body for each in one)
        machine = replace(runs.problem.machine, event_maximum=made.highest)
        violations = check_commands(replace(runs.problem, machine=machine), runs.plan, lists)
    kinds.update(type(each).__name__ for one in own.lists for each in one.commands)
    found = {
        "waits": kinds["Wait"] + kinds["LoopWait"],
        "signals": kinds["Signal"],
        "events": own.events,
        "scheme": str(lists.scheme),
        "inferences": inferences,
    }
    return found, violations


@verb(
    model=option(metavar="MODEL.onnx", show_default=False),
    values=option(name="--input", metavar="FILE.npz", show_default="random values"),
    seed=option(min=0),
    write=option(metavar="DIR", file_okay=False, show_default="nowhere"),
)
def replay(
    plan: Path,
    model: list[str],
    problem: Path | None = None,
    values: Path | None = None,
    seed: int = 0,
    dim: list[str] | None = None,
    write: Path | None = None,
    as_json: bool = False,
) -> None:
    """Run a plan on real numbers and compare it with onnxruntime.

    Each operator is compared on the plan's own operands, up to what rounding explains; the
    first that differs is named with its tile and address. Exit code 7 then, or when the plan
    reads bytes that are not there. Of a stream inferences overlap, each on other inputs.

    Parameters
    ----------
    model
        The model that it was made for; of several networks repeat it.
    values
        Values of the network's inputs, one array each, and perhaps of its outputs; of a stream
        those of the first inference.
    seed
        Seed of the random values.
    write
        Write the inputs and the outputs of the plan for its C programs: input0.bin, expected0.bin
        and so on; of a stream with all inferences one behind the other.
    """
    from spmilp.checker.values.compare import replay_plan
    from spmilp.plan.file import open_pair

    found = replay_plan(
        *open_pair(plan, problem),
        model,
        dims=quantities.dimensions(dim),
        values=values,
        seed=seed,
        folder=write,
        warn=out.print_warning,
    )
    within = all(each.within for each in found)
    outputs = [
        {**asdict(each), "within": each.within, "absolute": out.finite(each.absolute)}
        | {"relative": out.finite(each.relative)}
        for each in found
    ]
    formats = {"name": "", "dtype": "", "absolute": ".3g", "relative": ".3g"}
    if found[-1].inference:
        formats = {"inference": ",d", **formats}
    rows = [{**row, "within": "yes" if row["within"] else "OUTSIDE"} for row in outputs]
    table = out.table_of(rows, {**formats, "within": ""})
    reasons = dict.fromkeys(f"{each.name}: {each.why}" for each in found if each.why)
    data = {"plan": str(plan), "within": within, "outputs": outputs}
    out.print_answer(data, [table, *reasons], as_json=as_json)
    if not within:
        raise typer.Exit(ExitCode.PLAN_INVALID)


@verb(
    jitter=option(metavar="SHARE", parser=arguments.reader(quantities.share), show_default="0 %"),
    seeds=option(min=0),
    output=option("-o", metavar="TRACE.json", dir_okay=False),
)
def simulate(
    plan: Path,
    jitter: float = 0.0,
    seeds: int = 20,
    output: Path | None = None,
    problem: Path | None = None,
    as_json: bool = False,
) -> None:
    """Run a plan's command lists as hardware does, and say when all ends.

    Nothing starts at a planned cycle: each core and each channel takes its list in order, waits
    for its events, and starts when it may; transfers on the same link share its bytes per cycle
    fairly. Of a stream that is its period, when inferences follow each other as they may. Exit
    code 7 when the plan is invalid.

    Parameters
    ----------
    jitter
        By what share durations of tasks and transfers vary, up and down: 5%.
    seeds
        Runs with jitter.
    output
        Where to write the run without jitter as a trace for ui.perfetto.dev.
    """
    from spmilp.export.perfetto import perfetto
    from spmilp.export.subject import Subject
    from spmilp.files import write_atomically

    result = valid_plan(plan, problem)
    found = result.simulate(jitter=jitter, seeds=seeds if jitter else 0)
    if output is not None:
        subject = Subject(problem=result.problem, plan=found.timed_plan())
        (content,) = perfetto(subject).values()
        write_atomically(output, content)
    delays = found.delays()
    formats = {"what": "", "place": "", "planned_start": ",d", "late": ",.0f", "longer": ",.0f"}
    formats |= {"link": "", "others": ",d"}
    lines: list[RenderableType] = [*found.lines()]
    if delays:
        lines += ["", out.styled("Longest beyond their planned cycles", "bold")]
        lines.append(out.table_of(delays, formats))
    data = {
        "plan": str(plan),
        "planned": found.planned,
        "simulated": found.simulated,
        "ratio": found.ratio,
        "chain": found.exact.cycles(),
        "jitter": jitter,
        "makespans": list(found.makespans),
        "delays": delays,
    }
    out.print_answer(data, lines, as_json=as_json)


class Kind(StrEnum):
    """What a figure shows."""

    TIMELINE = "timeline"
    MEMORY = "memory"
    GAP = "gap"


@verb(
    output=option(
        "-o",
        metavar="FILE.html|.pdf|.png|.svg",
        dir_okay=False,
        show_default="report.html beside the plan",
    ),
    kind=option(show_default="timeline"),
)
def report(
    plan: Path,
    output: Path | None = None,
    kind: Kind | None = None,
    problem: Path | None = None,
    as_json: bool = False,
) -> None:
    """Show a plan in one page, or in a figure for a paper.

    The page says what bounds the plan, when and where everything runs and lies, and
    why; it needs no network and no other file. Figures: timeline of cores and DMA
    channels, its critical chain framed; memory, what lies where and when; gap, incumbent
    and bound over the time of the search.
    Exit code 7 when the plan is invalid.

    Parameters
    ----------
    output
        Where to write the page, or a figure.
    kind
        What a figure shows.
    """
    from spmilp.report.figures import require_known_ending, write_figure

    target = output or folder_of(plan) / "report.html"
    is_page = target.suffix.lower() in (".html", ".htm")
    if is_page and kind is not None:
        raise typer.BadParameter(f"a page shows all of a plan: --kind {kind} needs -o FILE.pdf")
    if not is_page:
        require_known_ending(target)
    result = valid_plan(plan, problem)
    if is_page:
        result.report(target)
    elif kind is Kind.MEMORY:
        write_figure(result.memory_map(), target)
    elif kind is Kind.GAP:
        write_figure(result.convergence(), target)
    else:
        write_figure(result.timeline(chain=True), target)
    size = target.stat().st_size
    said = f"written: {target} ({quantities.size(size)})"
    out.print_answer({"file": str(target), "bytes": size}, [said], as_json=as_json)


@verb(
    *("dim", "input", "pins", "passes"),
    source=argument("OUTDIR|PLAN.json|PROBLEM.json|MODEL.onnx"),
    time_limit=option(parser=arguments.duration, metavar="DURATION", show_default="20s"),
    quiet=option("-q"),
)
def explain(
    context: typer.Context,
    source: str,
    machine: str | None = None,
    problem: Path | None = None,
    time_limit: float = 20.0,
    groups: bool = False,
    quiet: bool = False,
    as_json: bool = False,
    **given: Any,
) -> None:
    """Say why a plan takes its cycles; or why there is none, and which changes help.

    Of a plan: its critical chain, what binds it, idle cores. Of a problem or a model that
    does not fit: what is in the way, required and available bytes, and the smallest changes with
    which a plan was found. Of one that fits, a quick plan is explained; with --groups, nothing
    is solved. Ctrl-C ends the search; what is known then is said.

    Exit code 4 or 5 without a plan, as of solve; 7 when a plan is invalid.

    Parameters
    ----------
    source
        A plan or its folder; a problem file; or a model (onnx:NAME for a graph of the onnx
        package).
    time_limit
        Nothing more is tried after this: 20s, 5m, none. The search for a plan has half of it.
    groups
        Of a model: its operators, groups and tiles, and what bounds them.
    quiet
        No log on stderr.
    """
    from spmilp.explaining.explain import explain as explained
    from spmilp.watch import Observer, Stage

    if groups:
        if given.pop("pins") is not None:
            raise typer.BadParameter("--groups shows a model without pins; leave --pins out")
        given["dim"] = quantities.dimensions(given["dim"])
        given["input"] = quantities.input_values(given["input"])
        _print_groups(source, machine, given, as_json=as_json)
        return
    log = out.SolveLog(
        context.obj or time.perf_counter(), shows=not (quiet or as_json or _is_plan(source))
    )
    with interrupts_noted() as interrupts:

        def on_stage(stage: Stage) -> None:
            interrupts.finishing = stage is Stage.CHECKING
            log.stage(stage)

        observer = Observer(on_stage=on_stage, on_log=log.entry, on_warning=out.print_warning)
        if _is_plan(source):
            said = explained(valid_plan(Path(source), problem), observer=observer)
        else:
            said = explained(source, machine, time_limit=time_limit, observer=observer, **given)
    out.print_answer(said.data, [said.text], as_json=as_json)
    codes = {"infeasible": ExitCode.INFEASIBLE, "unknown": ExitCode.LIMIT_WITHOUT_PLAN}
    code = codes.get(str(said.data["status"]), ExitCode.OK)
    raise typer.Exit(interrupts.code or code)


def _is_plan(source: str) -> bool:
    """Say whether a file is a plan; what is no folder and no JSON is a model."""
    if not source.endswith(".json"):
        return Path(source).is_dir()
    try:
        content = json.loads(Path(source).read_bytes())
    except (OSError, ValueError):
        return False  # whoever reads it as a problem says what is wrong
    return isinstance(content, dict) and content.get("format") == "spmilp-plan"


def _print_groups(
    model: str, machine: str | None, network: dict[str, Any], *, as_json: bool
) -> None:
    from spmilp.explaining.groups import inspect_network
    from spmilp.source import load
    from spmilp.tile_selection.first_choice import choose_tilings

    read, target = load(model, machine, **network)
    found = inspect_network(read, target.machine, choose_tilings(read, target.machine))
    figures = [
        ("operators", ", ".join(f"{number} {kind}" for kind, number in found["operators"].items())),
        ("work", f"{found['macs']:,} MAC"),
        ("parameters", quantities.size(found["parameters"])),
        ("intermediates", quantities.size(found["intermediates"])),
        ("DRAM traffic", f"{quantities.size(found['compulsory_dram_traffic'])} at least"),
        (
            "roofline",
            f"{found['roofline_cycles']:,} cycles at least for any tiling: compute "
            f"{found['compute_cycles']:,.0f}, dram {found['dram_cycles']:,.0f}",
        ),
    ]
    rows = [{**row, "operators": " ".join(row["operators"])} for row in found["groups"]]
    count = quantities.count(len(rows), "fused group")
    shown: list[RenderableType] = [
        out.styled(f"{found['network']} on {found['machine']}: {count}", "bold"),
        out.table(("", ""), figures),
        "",
        out.table_of(rows, GROUP_COLUMNS),
    ]
    out.print_answer(found, shown, as_json=as_json)


GROUP_COLUMNS = {
    **dict.fromkeys(("name", "operators"), ""),
    **dict.fromkeys(("macs", "reads", "constants", "writes", "tiles"), ",d"),
    **dict.fromkeys(("compute_cycles", "dram_cycles"), ",.0f"),
    "bound_by": "",
}


@verb(
    formats=option("-f", name="--format", metavar="NAME,...", show_default="all"),
    output=option("-o", metavar="DIR", show_default="the folder export beside the plan"),
    model=option(metavar="MODEL.onnx", show_default=False),
    prefix=option(metavar="NAME"),
)
def export(
    plan: Path,
    formats: list[str] | None = None,
    output: Path | None = None,
    problem: Path | None = None,
    model: list[str] | None = None,
    dim: list[str] | None = None,
    prefix: str = "spmilp",
    as_json: bool = False,
) -> None:
    """Write C, tables and a trace that are made from a plan.

    Exit code 8 when the plan exceeds a limit of a format that was named: the others are written.
    Exit code 7 when the plan is invalid.

    Parameters
    ----------
    formats
        Formats (repeat, or separate by commas); all: each that can take the plan.
    output
        Where to write.
    model
        The model that it was made for (of several networks repeat it); c, player and c-code need
        it.
    prefix
        What the names of C objects begin with.
    """
    from spmilp.export.errors import InvalidPlanError
    from spmilp.export.formats import ALL, export_plan
    from spmilp.result import read

    result = read(plan, problem=problem)
    if result.plan is None:
        raise InvalidPlanError(result.violations)
    made = export_plan(
        result.problem,
        result.plan,
        formats or [ALL],
        model=model,
        dims=quantities.dimensions(dim),
        prefix=prefix,
    )
    target = output or folder_of(plan) / "export"
    files = made.write(target)
    data = {
        "files": [str(file) for file in files],
        "left_out": [{"format": name, "reason": why} for name, why in made.left_out],
        "failed": [{"format": name, "reason": why} for name, why in made.failed],
        "footprint": made.footprint.fields() if made.footprint else None,
    }
    lines = [f"written: {file}" for file in files]
    if len(files) > MOST_FILES:
        lines = [f"written: {len(files)} files in {target}, which export.json lists"]
    lines += [f"left out: {name}: {why.removeprefix(f'{name}: ')}" for name, why in made.left_out]
    lines += made.footprint.lines() if made.footprint else ()
    out.print_answer(data, lines, as_json=as_json)
    made.require_all()


def valid_plan(plan: Path, problem: Path | None) -> "Result":
    """Read a plan with its problem, and the log of its search where it lies beside it.

    Raises an :class:`InvalidPlanError` if the checker rejects it.
    """
    from spmilp.export.errors import InvalidPlanError
    from spmilp.result import read

    log = folder_of(plan) / LOG
    result = read(plan, problem=problem, log=log if log.exists() else None)
    if result.violations:
        raise InvalidPlanError(result.violations, "shown")
    return result


def folder_of(plan: Path) -> Path:
    """Return the folder in which a plan lies, be it the folder itself that is given."""
    return plan if plan.is_dir() else plan.parent
