"""The command ``spmilp``: the verbs, and what becomes of errors.

Importing this module is cheap: each verb imports what it needs when it runs. Errors that a user
can act on end a command with one message and one exit code.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from time import perf_counter
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import spmilp
from spmilp.cli import facts, pack, plans, runs, solve
from spmilp.cli.arguments import help_of
from spmilp.cli.interrupts import COMMAND, Interrupted, failure, message
from spmilp.cli.output import (
    OutputError,
    discard_output,
    prepare_streams,
    print_error,
    print_json,
    print_json_line,
)
from spmilp.errors import ArgumentError, ExitCode, SpmilpError, UnsupportedOperatorError

JSON_LINES = "--json-lines"
JSON_FORMS = ("--json", JSON_LINES)
"""Options for an answer as JSON, errors included."""

NO_ROOM = "failed to map segment"
"""What the dynamic linker says of a library for which there is no memory."""


class FailuresGroup(TyperGroup):
    """The group of verbs; it turns what they raise into messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run a verb."""
        COMMAND.state = "nothing was written"
        _refuse_empty(ctx.args)
        as_json = next((form for form in JSON_FORMS if form in ctx.args), None)
        try:
            return super().invoke(ctx)
        except SpmilpError as error:
            is_option = isinstance(error, ArgumentError) and error.is_option
            said = f"--{error}" if is_option else str(error)
            raise _ending(error, said, error.exit_code, as_json) from error
        except KeyboardInterrupt as error:
            code = error.code if isinstance(error, Interrupted) else ExitCode.INTERRUPTED
            raise _ending(error, message(), code, as_json) from error
        except BrokenPipeError as error:
            raise typer.Exit(ExitCode.BROKEN_PIPE) from error
        except (MemoryError, ImportError) as error:
            if isinstance(error, ImportError) and NO_ROOM not in str(error):
                raise
            why = f"out of memory ({error or 'no figures'})"
            code = ExitCode.LIMIT_WITHOUT_PLAN
            raise _ending(error, message(why), code, as_json) from error
        except OSError as error:
            if error.filename is None:
                raise
            said = f"{error.filename}: {error.strerror}"
            raise _ending(error, said, ExitCode.INVALID_INPUT, as_json) from error


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse arguments without text, such as a variable of a script that is not set."""
    for before, given in pairwise(["", *arguments]):
        if given.startswith("--") and given.endswith("="):
            raise typer.BadParameter(f"{given[:-1]} is empty")
        if not given:
            raise typer.BadParameter(
                f"{before if before.startswith('-') else 'an argument'} is empty"
            )


def _ending(error: BaseException, message: str, code: ExitCode, as_json: str | None) -> typer.Exit:
    """Print the message, as JSON too where that was asked for, and return the exit."""
    print_error(message)
    if as_json:
        answer = failure(type(error).__name__, message, code)
        if isinstance(error, UnsupportedOperatorError):
            fields = ("node", "operator", "reason")
            answer["error"]["nodes"] = [
                dict(zip(fields, each, strict=True)) for each in error.nodes
            ]
        if as_json == JSON_LINES:
            print_json_line({"event": "answer", **answer})
        else:
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
    *(solve.solve, plans.check, plans.replay, plans.export, plans.report, plans.explain),
    *(runs.compare, runs.sweep, facts.bound, facts.calibrate, pack.pack),
    *(facts.machines, facts.solvers),
)
for verb in VERBS:
    examples = f"{pack.EXAMPLES}\n\n" if verb is pack.pack else ""
    app.command(verb.__name__, help=help_of(verb), epilog=examples + EXIT_CODES)(verb)


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
