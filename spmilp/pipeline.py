"""The line from a model to a checked plan, written out: load, lower, solve, check.

This is the library's public face and the file to read first. Each step is one function from one
frozen value to the next; the command line adds options, tables and exit codes and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from spmilp.beside import written_beside
from spmilp.checker.check import check
from spmilp.checker.values.compare import Difference, compare, reference_outputs
from spmilp.checker.values.delayed import replay_with_delays
from spmilp.checker.values.inputs import random_inputs, read_inputs
from spmilp.checker.values.replay import replay
from spmilp.checker.violation import Violation
from spmilp.commands.build import build_commands
from spmilp.errors import FileError
from spmilp.export.errors import InvalidPlanError
from spmilp.export.formats import Exported, export
from spmilp.export.stamp import stamp_of
from spmilp.export.subject import Subject
from spmilp.files import read_bytes
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.frontend.read import find_model
from spmilp.machine.read import MachineFile, load_machine
from spmilp.plan.plan import Plan
from spmilp.plan.write import write_plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.problem.write import write_problem
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.registry import find_solver
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.search import TileSearch, fast_initial_problem, search_tilings
from spmilp.tile_selection.tiled_problem import TiledProblem

DEFAULT_MACHINE = "mesh4x4"
DEFAULT_SOLVER = "auto"
DEFAULT_OPTIONS = SolveOptions()

PAIR = ("problem.json", "plan.json")
REJECTED = "rejected-"
MUCH_TO_WRITE = 10_000
"""Residencies from which on a plan is written by a process of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded:
    """A network that is ready to be tiled, and the machine it is for."""

    network: Network
    target: MachineFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A problem, a solver's answer to it, and the checker's verdict.

    Parameters
    ----------
    violations
        What the checker found wrong with the plan; empty when it accepts the plan, and when there
        is none.
    """

    problem: Problem
    result: SolverResult
    violations: tuple[Violation, ...]

    @property
    def plan(self) -> Plan | None:
        """The plan, if there is one and the checker accepts it."""
        return None if self.violations else self.result.plan


def map_model(
    model: str | Path,
    machine: str | Path = DEFAULT_MACHINE,
    *,
    dims: Mapping[str, int] | None = None,
    objective: Quantity = Quantity.MAKESPAN,
    tile_search: TileSearch | None = None,
    solver: str = DEFAULT_SOLVER,
    options: SolveOptions = DEFAULT_OPTIONS,
) -> Mapped:
    """Map an ONNX model onto a machine.

    Parameters
    ----------
    model
        An ONNX file, or ``onnx:NAME`` for one of the graphs in the ``onnx`` package.
    machine
        The name of a preset, or a YAML file.
    dims
        Sizes of the model's dynamic dimensions by name.
    tile_search
        How long to look for better tile sizes than the first choice; ``None`` keeps that.

    Raises
    ------
    SpmilpError
        If a file cannot be used, an operator cannot be lowered, or a tile fits no scratchpad.
    """
    problem = problem_from_model(
        model, machine, dims=dims, objective=objective, tile_search=tile_search
    )
    return map_problem(problem, solver=solver, options=options)


def map_problem(
    problem: Problem, *, solver: str = DEFAULT_SOLVER, options: SolveOptions = DEFAULT_OPTIONS
) -> Mapped:
    """Solve a problem and check the plan."""
    return judge(problem, solve_problem(problem, solver, options))


def problem_from_model(
    model: str | Path,
    machine: str | Path = DEFAULT_MACHINE,
    *,
    dims: Mapping[str, int] | None = None,
    objective: Quantity = Quantity.MAKESPAN,
    tile_search: TileSearch | None = None,
) -> Problem:
    """Load a model and a machine, and lower the network; see :func:`map_model`."""
    return lower_network(load(model, machine, dims=dims), objective, tile_search)


def load(
    model: str | Path,
    machine: str | Path = DEFAULT_MACHINE,
    *,
    dims: Mapping[str, int] | None = None,
) -> Loaded:
    """Read a model and a machine, clean the model up, and fuse what the machine's cores can run."""
    target = load_machine(str(machine))
    network = load_network(find_model(str(model)), dims or {}, target.machine.kinds)
    return Loaded(network=network, target=target)


def lower_network(
    loaded: Loaded,
    objective: Quantity = Quantity.MAKESPAN,
    tile_search: TileSearch | None = None,
) -> Problem:
    """Choose tile sizes and lower to a problem that carries the hashes of both files.

    The first choice is by an estimate; with a ``tile_search`` others are tried and judged by the
    list scheduler's plans.
    """
    return draft_network(loaded, objective, tile_search).problem


def draft_network(
    loaded: Loaded,
    objective: Quantity = Quantity.MAKESPAN,
    tile_search: TileSearch | None = None,
) -> TiledProblem:
    """Lower a network as :func:`lower_network` does, and keep the schedule that the tiles have.

    An interrupt ends the search for tile sizes; before the first schedule it passes on.
    """
    network, target = loaded.network, loaded.target
    wanted = Objective.of(objective)
    sources = (("model", network.sha256), ("machine", target.sha256))
    quick: TiledProblem | None = None
    try:
        if tile_search is not None:
            quick = fast_initial_problem(
                network, target.machine, tile_search, objective=wanted, sources=sources
            )
        first = first_choice(network, target.machine, objective=wanted, sources=sources)
    except KeyboardInterrupt:
        if quick is None:
            raise
        return replace(quick, interrupted=True)
    if tile_search is None:
        return TiledProblem(problem=first.lower(first.tilings))
    return search_tilings(first, tile_search, known=quick)


def solve_problem(
    problem: Problem, solver: str, options: SolveOptions, hint: Plan | None = None
) -> SolverResult:
    """Let the solver of that name find a plan; a plan that is known may be its hint."""
    return find_solver(solver).solve(problem, options, hint)


def judge(problem: Problem, result: SolverResult) -> Mapped:
    """Let the checker decide about the plan of a result, if it has one."""
    return Mapped(problem=problem, result=result, violations=result.violations(problem))


def judge_and_write(
    problem: Problem, result: SolverResult, folder: Path
) -> tuple[Mapped, tuple[Path, ...]]:
    """Let the checker decide about a plan, and write it as :func:`write_outputs` does.

    Where there is much to write, a copy of this process does so under other names in the meantime.

    Raises
    ------
    FileError
        If the folder cannot be written.
    """
    plan = result.plan
    if plan is None or len(plan.residencies) < MUCH_TO_WRITE:
        mapped = judge(problem, result)
        return mapped, write_outputs(mapped, folder)
    with written_beside(lambda hidden: _write_pair(problem, plan, hidden), folder) as writing:
        mapped = judge(problem, result)
        written = None if writing is None else writing.finished()
        if written is None:
            return mapped, write_outputs(mapped, folder)
        prefix = REJECTED if mapped.plan is None else ""
        return mapped, tuple((written / name).replace(folder / (prefix + name)) for name in PAIR)


def write_outputs(mapped: Mapped, folder: Path) -> tuple[Path, ...]:
    """Write ``problem.json`` and ``plan.json``, and return what was written.

    An accepted plan replaces what the folder held. A rejected one is kept beside it as
    ``rejected-plan.json`` with ``rejected-problem.json``, for the report of the defect, as far as
    it can be written at all. Without a plan nothing is written.

    Raises
    ------
    FileError
        If the folder cannot be written.
    """
    if mapped.plan is not None:
        return _write_pair(mapped.problem, mapped.plan, folder)
    if mapped.result.plan is not None:
        # The format holds no plan whose indices lead nowhere; the violations say enough of those.
        with suppress(ValueError, IndexError):
            return _write_pair(mapped.problem, mapped.result.plan, folder, REJECTED)
    return ()


def _write_pair(problem: Problem, plan: Plan, folder: Path, prefix: str = "") -> tuple[Path, Path]:
    problem_file, plan_file = (folder / (prefix + name) for name in PAIR)
    sha256 = write_problem(problem, problem_file)
    write_plan(plan, problem, plan_file, problem_sha256=sha256)
    return problem_file, plan_file


def replay_plan(
    problem: Problem,
    plan: Plan,
    model: str | Path,
    *,
    dims: Mapping[str, int] | None = None,
    values: Path | None = None,
    seed: int = 0,
    delay_seeds: Sequence[int] = (),
) -> tuple[Difference, ...]:
    """Run a plan on real numbers, and compare each output with onnxruntime's.

    For each of ``delay_seeds`` it is run again by its command lists, with random delays on every
    task and transfer; the outputs must stay the same, bit for bit.

    Parameters
    ----------
    model
        The one that the problem was made from, with the same ``dims``.
    values
        An ``.npz`` file with the network's inputs; without it they are random.

    Raises
    ------
    ReplayError
        If the plan reads bytes that are not there, or changes bytes while they are read; or if
        delays change an output.
    SpmilpError
        If a file cannot be used, the model is another one, or onnxruntime is missing.
    """
    file, network = _network_of(problem, model, dims or {})
    inputs = read_inputs(values, network) if values else random_inputs(network, seed)
    reference = reference_outputs(file, inputs)
    outputs = replay(problem, plan, network, inputs)
    if delay_seeds:
        lists = build_commands(problem, plan)
        replay_with_delays(problem, plan, network, inputs, outputs, lists, delay_seeds)
    return compare(outputs, reference, network)


def export_plan(
    problem: Problem,
    plan: Plan,
    wanted: Iterable[str],
    only_if_possible: Iterable[str] = (),
    *,
    model: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    prefix: str = "spmilp",
    controllers: Iterable[tuple[str, str]] = (),
) -> Exported:
    """Make the files of export formats, in memory; see :mod:`spmilp.export.formats`.

    Parameters
    ----------
    model
        The one that the problem was made from, with the same ``dims``; some formats need it.
    prefix
        What the names of C objects begin with.
    controllers
        ``(pattern of engine names, controller)``; by default what the machine says.

    Raises
    ------
    InvalidPlanError
        If the checker does not accept the plan.
    ExportError
        If a wanted format cannot take the plan.
    FileError
        If the model cannot be used or is another one.
    """
    violations = check(problem, plan)
    if violations:
        raise InvalidPlanError(violations)
    network, content = None, None
    if model is not None:
        file, network = _network_of(problem, model, dims or {})
        content = read_bytes(file)
    subject = Subject(
        problem=problem,
        plan=plan,
        stamp=stamp_of(problem, plan),
        network=network,
        model=content,
        prefix=prefix,
        controllers=tuple(controllers),
    )
    return export(subject, wanted, only_if_possible)


def _network_of(
    problem: Problem, model: str | Path, dims: Mapping[str, int]
) -> tuple[Path, Network]:
    """Return the file and the network that a problem was made from."""
    file = find_model(str(model))
    network = load_network(file, dims, problem.machine.kinds)
    _is_its_model(problem, network, file)
    return file, network


def _is_its_model(problem: Problem, network: Network, file: Path) -> None:
    wanted = dict(problem.sources).get("model")
    if wanted is not None and wanted != network.sha256:
        raise FileError(
            f"{file} is not the model of this problem: SHA-256 {network.sha256[:12]}…, expected "
            f"{wanted[:12]}…"
        )
