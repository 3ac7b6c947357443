"""The command ``spmilp``: the verbs, and what becomes of errors.

Importing this module is cheap: each verb imports what it needs when it runs. Errors that a user
can act on end a command with one message and one exit code.
"""

import os
import sys
import traceback
from time import perf_counter
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import spmilp
from spmilp.cli import facts, pack, plans, runs, solve
from spmilp.cli.arguments import help_of
from spmilp.cli.interrupts import WHAT_REMAINS, Interrupted, failure
from spmilp.cli.output import prepare_streams, print_error, print_json
from spmilp.errors import ArgumentError, ExitCode, SpmilpError, UnsupportedOperatorError


class FailuresGroup(TyperGroup):
    """The group of verbs; it turns what they raise into messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb."""
        as_json = "--json" in ctx.args
        try:
            return super().invoke(ctx)
        except SpmilpError as error:
            is_option = isinstance(error, ArgumentError) and error.is_option
            said = f"--{error}" if is_option else str(error)
            raise _ending(error, said, error.exit_code, as_json) from error
        except KeyboardInterrupt as error:
            code = error.code if isinstance(error, Interrupted) else ExitCode.INTERRUPTED
            raise _ending(error, f"interrupted; {WHAT_REMAINS}", code, as_json) from error
        except BrokenPipeError as error:
            raise typer.Exit(ExitCode.BROKEN_PIPE) from error
        except (MemoryError, ImportError) as error:
            # The dynamic linker says this of a library for which there is no memory.
            if isinstance(error, ImportError) and "failed to map segment" not in str(error):
                raise
            said = f"out of memory ({error or 'no figures'}); {WHAT_REMAINS}"
            raise _ending(error, said, ExitCode.LIMIT_WITHOUT_PLAN, as_json) from error
        except OSError as error:
            if error.filename is None:  # standard output: the caller says so
                raise
            said = f"{error.filename}: {error.strerror}"
            raise _ending(error, said, ExitCode.INVALID_INPUT, as_json) from error


def _ending(error: BaseException, message: str, code: ExitCode, as_json: bool) -> typer.Exit:
    """Print the message, as JSON too where that was asked for, and return the exit."""
    print_error(message)
    if as_json:
        answer = failure(type(error).__name__, message, code)
        if isinstance(error, UnsupportedOperatorError):
            fields = ("node", "operator", "reason")
            answer["error"]["nodes"] = [
                dict(zip(fields, each, strict=True)) for each in error.nodes
            ]
        print_json(answer)
    return typer.Exit(int(code))


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
VERBS = (
    *(solve.solve, plans.check, plans.replay, plans.simulate, plans.export),
    *(plans.report, plans.explain),
    *(runs.compare, runs.sweep, facts.bound, facts.calibrate, pack.pack),
    *(facts.machines, facts.solvers),
)
for verb in VERBS:
    app.command(verb.__name__, help=help_of(verb))(verb)


def print_version(wanted: bool) -> None:
    """Print the version and end, if it is wanted."""
    if wanted:
        from spmilp.compiled import IS_COMPILED

        kernels = "compiled" if IS_COMPILED else "not compiled: they run as Python"
        typer.echo(f"spmilp {spmilp.__version__}, kernels {kernels}")
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


def main(started: float = STARTED) -> None:
    """Run the command line that began then, by ``perf_counter``; end with its exit code."""
    prepare_streams()
    try:
        code = _run(started)
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.BROKEN_PIPE
    except OSError as error:
        print_error(f"standard output: cannot be written: {error.strerror}")
        code = ExitCode.INVALID_INPUT
    sys.exit(code)


def _run(started: float) -> int:
    """Run the command line; an error that nobody foresaw gives exit code 70."""
    try:
        app(prog_name="spmilp", obj=started)
    except SystemExit as ended:
        # The library says 1 where the reader of the help has gone, and nowhere else.
        return ExitCode.BROKEN_PIPE if ended.code == 1 else int(ended.code or 0)
    except OSError:
        raise
    except Exception as error:
        if "--debug" in sys.argv or os.environ.get("SPMILP_DEBUG"):
            traceback.print_exc()
        first_line = str(error).partition("\n")[0][:300]
        print_error(
            f"internal error: {type(error).__name__}: {first_line}\n"
            "This is a defect of spmilp. Please report it with the command and its input; "
            "spmilp --debug ... shows the traceback."
        )
        return ExitCode.INTERNAL
    return ExitCode.OK
