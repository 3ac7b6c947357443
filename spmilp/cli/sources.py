"""What a verb maps: a problem file, or a model that is lowered to a problem."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import typer

from spmilp import pipeline
from spmilp.lowering.roofline import Roofline, roofline
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.tile_search import TileSearch


def read_source(
    source: str,
    machine: str | None,
    dims: Mapping[str, int],
    objective: Quantity | None,
    say: Callable[[str], None],
    tile_search: TileSearch | None = None,
) -> tuple[Problem, Roofline | None]:
    """Read a problem, or make it from a model and a machine; a model has a roofline too.

    Parameters
    ----------
    machine, dims, objective
        As on the command line; ``None`` and empty where the user said nothing.
    say
        Called with what is going on.
    tile_search
        How long to look for better tile sizes; ``None`` for the first choice.

    Raises
    ------
    BadParameter
        If a problem file comes with a machine or with sizes.
    SpmilpError
        If a file cannot be used.
    """
    if source.endswith(".json"):
        return _problem_of_file(source, machine, dims, objective, say), None
    say(f"reading {source}")
    loaded = pipeline.load(source, machine or pipeline.DEFAULT_MACHINE, dims=dims)
    say("choosing tiles and lowering")
    problem = pipeline.lower_network(loaded, objective or Quantity.MAKESPAN, tile_search)
    return problem, roofline(loaded.network, loaded.target.machine)


def _problem_of_file(
    source: str,
    machine: str | None,
    dims: Mapping[str, int],
    objective: Quantity | None,
    say: Callable[[str], None],
) -> Problem:
    """Read a problem file, with the objective of the command line if there is one."""
    if machine is not None or dims:
        raise typer.BadParameter(
            f"{source} is a problem file, which carries its machine and its sizes; "
            "leave --machine and --dim out, or give the ONNX model"
        )
    say(f"reading {source}")
    problem = read_problem(Path(source))
    return problem if objective is None else replace(problem, objective=Objective.of(objective))
