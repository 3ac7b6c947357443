"""The command ``spmilp``: the verbs, and what becomes of errors.

Importing this module is cheap: each verb imports what it needs when it runs.
"""

import os
import sys
import traceback
from time import perf_counter
from typing import Annotated

import typer

import spmilp
from spmilp.cli import (
    bound,
    calibrate,
    check,
    compare,
    explain,
    export,
    machines,
    pack,
    replay,
    report,
    solve,
    solvers,
    sweep,
)
from spmilp.cli.failures import FailuresGroup
from spmilp.cli.output import OutputError, discard_output, prepare_streams, print_error
from spmilp.errors import ExitCode

STARTED = perf_counter()
"""When the process began, about: time limits count from here."""

EXIT_CODES = """\
Exit codes:
  0  done; a plan is feasible and checked
  2  wrong usage
  3  invalid input, or an operator that cannot be lowered
  4  no plan exists
  5  limit reached without a plan
  6  gap not reached (with --strict-gap)
  7  the plan is invalid, or its outputs differ
  8  export impossible for the target
 70  internal error
130, 143  interrupted; a plan found until then is checked and written
141  nobody reads the output any more"""

app = typer.Typer(
    name="spmilp",
    cls=FailuresGroup,
    help="Map neural networks onto many-core machines with scratchpad memories.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("solve", epilog=EXIT_CODES)(solve.solve)
app.command("check", epilog=EXIT_CODES)(check.check)
app.command("replay", epilog=EXIT_CODES)(replay.replay)
app.command("export", epilog=EXIT_CODES)(export.export)
app.command("report", epilog=EXIT_CODES)(report.report)
app.command("explain", epilog=EXIT_CODES)(explain.explain)
app.command("compare", epilog=EXIT_CODES)(compare.compare)
app.command("sweep", epilog=EXIT_CODES)(sweep.sweep)
app.command("bound", epilog=EXIT_CODES)(bound.bound)
app.command("calibrate", epilog=EXIT_CODES)(calibrate.calibrate)
app.command("pack", epilog=f"{pack.EXAMPLES}\n\n{EXIT_CODES}")(pack.pack)
app.command("machines", epilog=EXIT_CODES)(machines.machines)
app.command("solvers", epilog=EXIT_CODES)(solvers.solvers)


def print_version(wanted: bool) -> None:
    """Print the version and end, if it is wanted."""
    if wanted:
        typer.echo(f"spmilp {spmilp.__version__}")
        raise typer.Exit


@app.callback()
def settings(
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", envvar="SPMILP_DEBUG", help="Show the traceback of an internal error."
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=print_version, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Map neural networks onto many-core machines with scratchpad memories."""


def shortened(message: str, longest: int = 300) -> str:
    """Return the first line of a message, cut where it is too long to read."""
    line = message.partition("\n")[0]
    return line if len(line) <= longest else f"{line[:longest]}…"


def main(started: float = STARTED) -> None:
    """Run the command line, and end with its exit code.

    Parameters
    ----------
    started
        When the command began, by ``perf_counter``: by default when this module was imported.
    """
    prepare_streams()
    try:
        code = _run(started)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        code = ExitCode.BROKEN_PIPE
    except OutputError as error:
        discard_output()
        print_error(str(error))
        code = error.exit_code
    sys.exit(code)


def _run(started: float) -> int:
    """Run the command line; an error that nobody foresaw gives exit code 70."""
    try:
        app(prog_name="spmilp", obj=started)
    except SystemExit as ended:
        # The library says 1 where the reader of the help has gone, and nowhere else.
        return ExitCode.BROKEN_PIPE if ended.code == 1 else int(ended.code or 0)
    except OutputError:
        raise
    except Exception as error:
        if "--debug" in sys.argv or os.environ.get("SPMILP_DEBUG"):
            traceback.print_exc()
        print_error(
            f"internal error: {type(error).__name__}: {shortened(str(error))}\n"
            "This is a defect of spmilp. Please report it with the command and its input; "
            "spmilp --debug ... shows the traceback."
        )
        return ExitCode.INTERNAL
    return ExitCode.OK
