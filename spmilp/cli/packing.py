"""What ``spmilp pack`` does once its options are read."""

import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from spmilp import packing
from spmilp.cli.interrupts import interrupts_noted
from spmilp.cli.packed import Answer, print_answer
from spmilp.cli.progress import ProgressLine, progress_line
from spmilp.errors import ExitCode
from spmilp.files import write_atomically
from spmilp.packing import Packing, PackingOptions, PackingProblem, PackingStatus
from spmilp.packing.fixed import is_all_fixed, judge_fixed
from spmilp.packing.minimalloc import Table, parse_table, read_table, text_with_offsets
from spmilp.packing.warm import warm_up
from spmilp.units import Bytes

STANDARD_STREAM = "-"
"""In place of a file name: stdin, or stdout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command, read; ``None`` where the user said nothing."""

    file: Path
    capacity: Bytes | None
    minimise: bool
    output: str | None
    ignore_offsets: bool
    time_limit: float
    node_limit: int | None
    seed: int
    workers: int
    as_json: bool


def run(request: Request) -> ExitCode:
    """Pack, check, write, print; return the exit code."""
    started = time.perf_counter()
    with interrupts_noted() as interrupts, progress_line() as progress:
        table = _table(request, progress)
        problem = PackingProblem(items=table.items, capacity=request.capacity)
        found = _packing(request, problem, progress)
        interrupts.finishing = True
        progress.say("checking the offsets")
        offsets = found.offsets
        violations = () if offsets is None else tuple(packing.check_packing(problem, offsets))
        good = offsets is not None and not violations
        text = text_with_offsets(table, offsets) if offsets is not None and good else ""
        file = request.output if good and request.output != STANDARD_STREAM else None
        if file is not None:
            write_atomically(file, text)
    answer = Answer(
        name=str(request.file),
        table=table,
        problem=problem,
        packing=found,
        violations=violations,
        file=file,
        minimise=request.minimise,
        seconds=time.perf_counter() - started,
        interrupted=interrupts.code is not None,
    )
    if good and request.output == STANDARD_STREAM:
        sys.stdout.write(text)
    else:
        print_answer(answer, as_json=request.as_json)
    return _exit_code(answer, interrupts.code)


def _table(request: Request, progress: ProgressLine) -> Table:
    progress.say(f"reading {request.file}")
    if str(request.file) == STANDARD_STREAM:
        table = parse_table(sys.stdin.buffer.read(), "stdin")
    else:
        table = read_table(request.file)
    if not request.ignore_offsets:
        return table
    return replace(table, items=tuple(replace(item, offset=None) for item in table.items))


def _packing(request: Request, problem: PackingProblem, progress: ProgressLine) -> Packing:
    if is_all_fixed(problem):
        return judge_fixed(problem)
    progress.say("loading the search (the first run compiles it for about half a minute)")
    warm_up()
    progress.say("packing")
    pack = packing.minimise if request.minimise else packing.pack
    return pack(problem, _options(request))


def _options(request: Request) -> PackingOptions:
    return PackingOptions(
        time_limit=None if math.isinf(request.time_limit) else request.time_limit,
        node_limit=request.node_limit,
        seed=request.seed,
        workers=request.workers,
    )


def _exit_code(answer: Answer, signal: ExitCode | None) -> ExitCode:
    """Return the code: a defect of ours first, then a signal, then what the search says."""
    if answer.violations:
        return ExitCode.INTERNAL
    if signal is not None:
        return signal
    if answer.packing.status is PackingStatus.INFEASIBLE:
        return ExitCode.INFEASIBLE
    if answer.packing.offsets is None:
        return ExitCode.LIMIT_WITHOUT_PLAN
    return ExitCode.OK
