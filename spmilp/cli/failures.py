"""Errors that a user can act on end a command with one message and one exit code."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from spmilp.cli.interrupts import COMMAND, Interrupted, message
from spmilp.cli.output import print_error, print_json, print_json_line
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
            why = error.why if isinstance(error, Interrupted) else "interrupted"
            raise _ending(error, message(why), code, as_json) from error
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
        described: dict[str, object] = {"kind": type(error).__name__, "message": message}
        if isinstance(error, UnsupportedOperatorError):
            fields = ("node", "operator", "reason")
            described["nodes"] = [dict(zip(fields, node, strict=True)) for node in error.nodes]
        answer = {"status": "error", "exit_code": int(code), "error": described}
        if as_json == JSON_LINES:
            print_json_line({"event": "answer", **answer})
        else:
            print_json(answer)
    return typer.Exit(int(code))
