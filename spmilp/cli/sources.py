"""What a verb maps: a problem file, or a model that is lowered to a problem."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from spmilp import pipeline
from spmilp.bounds.roofline import Roofline, roofline
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.tile_selection.search import TileSearch
from spmilp.tile_selection.tiled_problem import TiledProblem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """What is to be mapped.

    Parameters
    ----------
    draft
        The problem, with a first schedule where tile sizes were searched for.
    loaded
        What the problem was made from; ``None`` where only the problem is known.
    """

    draft: TiledProblem
    loaded: pipeline.Loaded | None = None

    def roofline(self) -> Roofline | None:
        """Return the bound for every tiling; ``None`` where only the problem is known."""
        if self.loaded is None:
            return None
        return roofline(self.loaded.network, self.loaded.target.machine)


def read_source(
    source: str,
    machine: str | None,
    dims: Mapping[str, int],
    objective: Quantity | None,
    say: Callable[[str], None],
    tile_search: TileSearch | None = None,
) -> Source:
    """Read a problem, or make it from a model and a machine.

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
        problem = _problem_of_file(source, machine, dims, objective, say)
        return Source(draft=TiledProblem(problem=problem))
    say(f"reading {source}")
    loaded = pipeline.load(source, machine or pipeline.DEFAULT_MACHINE, dims=dims)
    say("choosing tiles and lowering")
    draft = pipeline.draft_network(loaded, objective or Quantity.MAKESPAN, tile_search)
    return Source(draft=draft, loaded=loaded)


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
