"""Verbs: functions whose parameters are options, and whose docstrings are the help.

An option of a solve is as :class:`~spmilp.options.Options` has it.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import Annotated, Any, TypeVar

import typer

from spmilp import quantities
from spmilp.options import Options, help_texts, parameters_of, with_parameters

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PANELS = {
    "Limits of the search": ("time_limit", "effort", "gap", "seed", "workers"),
    "Earlier plans and pins": ("hint", "pins", "lock", "lock_buffers", "lock_cost", "solution"),
}
"""Titles of the groups of a solve's options in its help; the others come first."""

FIELDS = {each.name: each for each in fields(Options)}


def reader(read: Callable[[Any], T]) -> Callable[[str], T]:
    """Return a reader that complains as the command line does."""

    def read_or_complain(given: str) -> T:
        try:
            return read(given)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    return read_or_complain


duration = reader(quantities.duration)
byte_count = reader(quantities.byte_count)


def names(text: str) -> tuple[str, ...]:
    """Read ``a,b,c``; at least one name, and each once."""
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r}: expected different names with commas between them")
    return found


def numbers(text: str) -> tuple[int, ...]:
    """Read ``0,1,2``; at least one number, and each once."""
    return tuple(map(reader(int), names(text)))


def argument(metavar: str, **shown: Any) -> Mapping[str, Any]:
    """Return how an argument is shown."""
    return {"show_default": False, "metavar": metavar, **shown}


def option(*also: str, name: str = "", **shown: Any) -> Mapping[str, Any]:
    """Return how an option is shown: its other names, and its own where it is another one."""
    return {"also": also, "name": name, **shown}


def presets(begun: str) -> list[str]:
    """Return the machines whose names begin like that, for the completion of shells."""
    from spmilp.machine.read import list_presets

    return [name for name in list_presets() if name.startswith(begun)]


COMMON = {
    "machine": option(
        "-m",
        metavar="NAME|FILE.yaml",
        help="A preset (see spmilp machines) or a machine file, for a model. A problem file "
        "carries its own machine.",
        show_default="mesh4x4",
        autocompletion=presets,
    ),
    "plan": argument("PLAN.json", help="The plan, or its folder."),
    "problem": option(
        metavar="FILE", help="Its problem.", show_default="problem.json beside the plan"
    ),
    "as_json": option(name="--json", help="Print one JSON object instead of text."),
}
"""Parameters that several verbs have."""


def verb(*of_solve: str, **shown: Mapping[str, Any]) -> Callable[[F], F]:
    """Make a function a verb: its parameters become options, with the help of its docstring.

    Its ``**given`` stands for options ``of_solve``. Its own parameters are ``shown`` as
    :func:`argument` or :func:`option` says.
    """

    def made(function: F) -> F:
        texts, signature = help_texts(function), inspect.signature(function)
        hints = inspect.get_annotations(function, eval_str=True)
        own = []
        for each in signature.parameters.values():
            kind = hints[each.name]
            if each.kind is not each.VAR_KEYWORD and kind is not typer.Context:
                how = {**COMMON.get(each.name, {}), **shown.get(each.name, {})}
                if not how and each.name in FIELDS and each.name not in texts:
                    each = each.replace(annotation=of_option(FIELDS[each.name]))
                else:
                    help_text = texts.get(each.name) or how.get("help", "")
                    if kind is bool:  # a flag, which takes no value
                        how = {**option(metavar=""), **how}
                    info = _info(each.name, {**how, "help": help_text})
                    each = each.replace(annotation=_annotated(kind, info))
            own.append(each)
        return with_parameters(function, [*parameters_of(of_solve, of_option), *own])

    return made


def help_of(function: Callable[..., Any]) -> str:
    """Return what a verb does: its docstring without the parameters."""
    return inspect.cleandoc(function.__doc__ or "").partition("\n\nParameters\n")[0]


def of_option(field: Field[Any]) -> Any:
    """Return the annotation of an option of a solve."""
    shown = dict(field.metadata["shown"])
    if shown.pop("parsed", False):
        shown["parser"] = reader(field.metadata["read"])
    name = f"--{field.name.replace('_', '-')}"
    panel = next((title for title, group in PANELS.items() if field.name in group), None)
    shown["rich_help_panel"] = panel
    info = typer.Option(name, help=help_texts(Options)[field.name], **shown)
    return _annotated(field.metadata["kind"], info)


def _info(name: str, how: dict[str, Any]) -> Any:
    if "also" not in how and "metavar" in how:
        return typer.Argument(**how)
    own = how.pop("name", "") or f"--{name.replace('_', '-')}"
    return typer.Option(own, *how.pop("also", ()), **how)


def _annotated(kind: Any, info: Any) -> Any:
    annotated: Any = Annotated
    return annotated[kind, info]
