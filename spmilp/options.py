"""The options of a solve, each stated once: what it means, its default, and how it is read.

:func:`spmilp.solve`, the command line, comparisons and sweeps all take them from here. The command
line's help is the text of :class:`Options`.
"""

# ruff: noqa: RUF009 - the calls in the record are fields

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from functools import cache, partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spmilp.errors import ArgumentError
from spmilp.problem.objective import Quantity
from spmilp.processes import processors
from spmilp.quantities import (
    dimensions,
    duration,
    input_values,
    numbers_by_name,
    share,
    states,
)
from spmilp.tile_selection.settings import Tiles

if TYPE_CHECKING:
    from spmilp.problem.named_pins import NamedPins
    from spmilp.warm_start import Hint, Lock

E = TypeVar("E", bound=StrEnum)
F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SOLVER = "auto"

WORKERS = "SPMILP_WORKERS"
"""The environment variable that says how many workers a solve has by default."""

SECONDS = 60.0
"""The usual limit of time where the work has none."""

EFFORTS = {"quick": 10.0, "normal": 60.0, "high": 600.0}
"""Work as :class:`spmilp.solvers.common.clock.Work` counts it."""


def _option(
    default: object, kind: object, read: Callable[[Any], object] | None = None, **shown: object
) -> Any:
    """Return a field of the record, whose type on the command line is ``kind``.

    What the user gives becomes the value by ``read``, with ``parsed`` already while the command
    line parses its arguments. It is shown there with ``metavar``, ``show_default`` and so on.
    """
    return field(default=default, metadata={"kind": kind, "read": read, "shown": shown})


def _one_of(able: Iterable[E], name: str) -> Callable[[str | None], E | None]:
    known = {str(one): one for one in able}

    def read(given: str | None) -> E | None:
        if given is not None and given not in known:
            raise ArgumentError(f"{name} {given}: there are {', '.join(known)}", is_option=True)
        return None if given is None else known[given]

    return read


def _solver(given: str) -> str:
    from spmilp.registry import refuse_unknown

    refuse_unknown(given)
    return given


def _complete_solver(begun: str) -> list[str]:
    from spmilp.registry import solver_names

    return [name for name in solver_names() if name.startswith(begun)]


def _pins(given: Any) -> "NamedPins":
    from spmilp.problem.named_pins import read_pins

    return read_pins(given)


def _seconds(given: str | float | None) -> float:
    if isinstance(given, float) and math.isnan(given):
        return given  # what is usual depends on the effort
    return duration("none" if given is None else given)


def _workers(given: int | None) -> int:
    if given is not None:
        return given
    usual = os.environ.get(WORKERS) or str(processors())
    if not usual.isdecimal() or int(usual) < 1:
        raise ArgumentError(f"the variable {WORKERS} is {usual!r}; set a number of 1 or more")
    return int(usual)


def usual_time_limit(given: float, effort: float | None) -> float:
    """Return a time limit that was read, or the usual one where none was given."""
    if not math.isnan(given):
        return given
    return SECONDS if effort is None else math.inf


def _effort(given: str | float | None) -> float | None:
    if given is None:
        return None
    if given in EFFORTS:
        return EFFORTS[str(given)]
    try:
        effort = float(given)
    except ValueError:
        effort = math.nan
    if not 0.0 < effort < math.inf:
        known = ", ".join(EFFORTS)
        raise ArgumentError(
            f"effort {given}: there are {known}, and numbers above 0", is_option=True
        )
    return effort


def _period(given: int | None) -> int | None:
    if given is not None and given < 1:
        raise ArgumentError(f"period {given}: expected 1 cycle or more", is_option=True)
    return given


def _of_networks(option: str, example: str) -> Callable[[Any], object]:
    return partial(
        numbers_by_name, option, expected=f"NAME=NUMBER of 1 or more, as in --{option} {example}"
    )


def _names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """The options of a solve, as they were read.

    Parameters
    ----------
    dim
        Size of a dynamic dimension of the model: ``{"batch": 1}``, ``batch=1`` (repeat); of one
        axis of an input: ``{"x.2": 64}``, ``x.2=64``.
    input
        Values of an input that is the same at each run, so that what they decide is known ahead:
        ``{"sr": 16000}``, ``sr=16000``, ``sizes=2,3`` (repeat).
    solver
        Which solver; ``spmilp solvers`` lists them.
    tiles
        Tile sizes by a ``first`` estimate, by a ``search`` that takes 40 to 56 % of the time, or
        the largest that fit, as SMAUG has them (``smaug``).
    objective
        What to make small; the other quantities break ties. It replaces the one that a problem has.
        With period the plan is a stream of inferences that overlap.
    period
        Cycles from an inference to the next one that are few enough: it is latency that counts
        then. The objective is the period.
    rate
        Inferences of a network in each period, by its file's name: ``{"kws": 2}``, ``kws=2``
        (repeat). Their inputs are there when the period begins.
    deadline
        Cycles after the begin of a period by which a network shall have ended: ``{"kws": 30000}``,
        ``kws=30000`` (repeat). A stream that keeps all of them is better than one that does not.
    state
        An input and the output that each inference of a stream leaves there for the next one:
        ``{"h_in": "h_out"}``, ``h_in=h_out`` (repeat). The application gives its first value.
    hint
        Begin with this plan, which may be of another machine or objective. For a model, its
        problem.json has to lie beside it, and its tiles are tried, too. The answer is never worse
        in the first quantity.
    pins
        What the plan has to keep to: cores of tasks, memories of buffers, tiles. A problem keeps
        those that it has.
    lock
        Keep the addresses of this earlier plan where that is possible, and say what it costs; its
        problem.json has to lie beside it. Half of the time goes to a plan without the lock, to know
        the cost.
    lock_buffers
        Lock the buffers and tensors of these names (repeat); ``*`` stands for anything.
    lock_cost
        Let the lock make the plan longer (or larger) by at most this: 0.05 or 5 %.
    solution
        The plan is the one that this solution is of the model that ``--write-model`` has written of
        the same problem: a file of HiGHS, CBC, Gurobi, SCIP or CPLEX. Nothing is searched for.
    time_limit
        Limit on each search: 60s, 5m, 1h, seconds, none. Beside an effort it ends the search early,
        and the answer says so.
    effort
        Limit the work instead of the time: quick, normal, high, or a number, about the seconds of
        a usual computer (10, 60, 600). The same input, options and version then give the same
        bytes, whatever the computer, its load and the workers.
    gap
        Stop when the gap of these tiles, (objective - bound) / objective, is at most this: 0.01 or
        1 %. Other tiles may allow better plans; the answer bounds these, too.
    seed
        Seed of the search.
    workers
        Threads of CP-SAT and of MILP solvers, whose runs only 1 makes repeatable, and only unless
        the time limit cuts a search short. With an effort there is one.
    cost_model
        Learn the cycles of tiles from these measured ones (spmilp calibrate says how well); those
        of tiles outside of the measurements are the machine's, which a warning says.
    passes
        Passes over the network, where not all are on, with commas between them: fuse=tvm or
        fuse=none, no-batch_norm, no-simplify, no-cse, no-layout, no-sharing.
    """

    dim: Mapping[str, int] = _option(None, list[str] | None, dimensions, metavar="NAME=SIZE")
    input: Mapping[str, str] = _option(None, list[str] | None, input_values, metavar="NAME=VALUE")
    solver: str = _option(
        DEFAULT_SOLVER, str, _solver, metavar="NAME", autocompletion=_complete_solver
    )
    tiles: Tiles = _option(
        None,
        Tiles | None,
        _one_of(Tiles, "tiles"),
        show_default="search with --solver auto, else first",
    )
    objective: Quantity | None = _option(
        None,
        Quantity | None,
        _one_of(Quantity, "objective"),
        show_default="makespan, or what the problem file says",
    )
    period: int | None = _option(
        None, int | None, _period, min=1, metavar="CYCLES", show_default="the least"
    )
    rate: Mapping[str, int] = _option(
        None,
        list[str] | None,
        _of_networks("rate", "kws=2"),
        metavar="NAME=COUNT",
        show_default="1 of each",
    )
    deadline: Mapping[str, int] = _option(
        None,
        list[str] | None,
        _of_networks("deadline", "kws=30000"),
        metavar="NAME=CYCLES",
        show_default="none",
    )
    state: Mapping[str, str] = _option(
        None, list[str] | None, states, metavar="INPUT=OUTPUT", show_default="none"
    )
    hint: "Hint | None" = _option(
        None, Path | None, metavar="PLAN.json|OUTDIR", show_default="none"
    )
    pins: "NamedPins" = _option(
        None, Path | None, _pins, metavar="FILE.yaml", dir_okay=False, show_default="none"
    )
    lock: "Lock | None" = _option(
        None, Path | None, metavar="PLAN.json|OUTDIR", show_default="none"
    )
    lock_buffers: tuple[str, ...] = _option(
        None, list[str] | None, _names, metavar="PATTERN", show_default="all"
    )
    lock_cost: float | None = _option(
        None, float | None, share, parsed=True, metavar="SHARE", show_default="any"
    )
    solution: Path | None = _option(
        None, Path | None, metavar="FILE.sol", dir_okay=False, show_default="none"
    )
    time_limit: float = _option(
        math.nan,
        float,
        _seconds,
        parsed=True,
        metavar="DURATION",
        show_default="60s, or none with an effort",
    )
    effort: float | None = _option(
        None,
        float | None,
        _effort,
        parsed=True,
        metavar="quick|normal|high|NUMBER",
        show_default="none: the time counts",
    )
    gap: float = _option(0.0, float, share, parsed=True, metavar="SHARE")
    seed: int = _option(0, int, min=0, metavar="N")
    workers: int = _option(
        None,
        int | None,
        _workers,
        min=1,
        metavar="N",
        show_default="one per processor; in comparisons and sweeps 1",
    )
    cost_model: Path | None = _option(
        None,
        Path | None,
        metavar="MEASURED.csv",
        dir_okay=False,
        show_default="none: by the machine's rates",
    )
    passes: str = _option("", str, metavar="LIST", show_default="all on")

    @classmethod
    def of(cls, given: Mapping[str, object]) -> "Options":
        """Read options; what is not given has its default.

        Raises a ``TypeError`` if there is no such option, a ``ValueError`` if one has a value that
        it cannot have or two contradict each other, and a ``SpmilpError`` if a file cannot be used.
        """
        from spmilp.registry import hint_takers
        from spmilp.warm_start import read_hint, read_lock

        known = {each.name: each for each in fields(cls)}
        for name in given.keys() - known.keys():
            raise TypeError(f"there is no option {name!r}; there are {', '.join(known)}")
        read: dict[str, Any] = {
            name: _read(name, each.metadata["read"], given.get(name, each.default))
            for name, each in known.items()
        }
        solver, hint, lock = read["solver"], read["hint"], read["lock"]
        if hint is not None and solver not in hint_takers():
            takers = ", ".join(hint_takers())
            raise ArgumentError(
                f"hint: solver {solver} begins with no plan; these do: {takers}", is_option=True
            )
        read["time_limit"] = usual_time_limit(read["time_limit"], read["effort"])
        if read["tiles"] is None:
            read["tiles"] = Tiles.SEARCH if solver == DEFAULT_SOLVER else Tiles.FIRST
        if read["tiles"] is Tiles.SMAUG and not (hint is lock is None):
            who = "lock" if hint is None else "hint"
            raise ArgumentError(f"tiles smaug: a {who} has its own tiles; leave one of the two out")
        if read["period"] is not None:
            if read["objective"] not in (None, Quantity.PERIOD):
                raise ArgumentError(
                    f"period {read['period']}: the objective is {read['objective']}; leave one of "
                    "the two out",
                    is_option=True,
                )
            read["objective"] = Quantity.PERIOD
        if read["solution"] is not None and not (hint is lock is None):
            who = "lock" if hint is None else "hint"
            raise ArgumentError(f"solution: it is the whole plan; leave the {who} out")
        names, cost = read["lock_buffers"], read["lock_cost"]
        if lock is None and (names or cost is not None):
            what = "lock-buffers" if names else "lock-cost"
            raise ArgumentError(
                f"{what}: there is no lock; give the earlier plan, too", is_option=True
            )
        read["hint"] = None if hint is None else read_hint(hint)
        cost = math.inf if cost is None else cost
        read["lock"] = None if lock is None else read_lock(lock, names, cost)
        return cls(**read)


def _read(name: str, reader: Callable[[Any], object] | None, given: object) -> object:
    if reader is None or (given is None and reader is share):
        return given
    try:
        return reader(given)
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from error


@cache
def help_texts(documented: Callable[..., Any]) -> Mapping[str, str]:
    """Return what each parameter means, from the docstring of a class or function."""
    lines = inspect.cleandoc(documented.__doc__ or "").partition("Parameters\n----------\n")[2]
    parts = re.split(r"^(\w+)\n", lines, flags=re.MULTILINE)[1:]
    return {
        name: " ".join(text.replace("``", "").split())
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def parameters_of(
    names: Iterable[str],
    annotation: Callable[[Field[Any]], object] = lambda option: Parameter.empty,
) -> list[Parameter]:
    """Return parameters that stand for options, each with the annotation of its option."""
    wanted = set(names)
    return [
        Parameter(
            each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=annotation(each)
        )
        for each in fields(Options)
        if each.name in wanted
    ]


def with_options(*names: str) -> Callable[[F], F]:
    """Let the signature of a function name the options that its ``**given`` stands for, or all."""

    def signed(function: F) -> F:
        own = inspect.signature(function).parameters.values()
        options = parameters_of(names or [each.name for each in fields(Options)])
        return with_parameters(function, [*options, *own])

    return signed


def with_parameters(function: F, parameters: Iterable[Parameter]) -> F:
    """Let the signature of a function name parameters, in the order in which kinds may stand.

    None of them stands for others.
    """
    named = (each for each in parameters if each.kind is not each.VAR_KEYWORD)
    found = sorted(named, key=lambda each: each.kind)
    signature = inspect.signature(function).replace(parameters=found)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
