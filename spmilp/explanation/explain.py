"""The front door of explanations: a plan, a problem or a model in, text and data out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spmilp import pipeline
from spmilp.errors import DoesNotFitError, PinError
from spmilp.explanation.cause import Cause, Misfit
from spmilp.explanation.misfit import misfit_of
from spmilp.explanation.pinned import misfit_of_pins, without_pins
from spmilp.explanation.remedies import Remedy, Trials, remedies_for
from spmilp.explanation.shortages import misfit_in_schedule, misfit_of_tiles
from spmilp.explanation.smaller_tiles import smaller_tiles
from spmilp.explanation.what_if import what_if as answers_for
from spmilp.explanation.words import why_it_does_not_fit
from spmilp.frontend.graph import Network
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.quantities import duration
from spmilp.registry import find_solver
from spmilp.report.explanation import Explanation
from spmilp.report.summary import network_name
from spmilp.result import Result, checked
from spmilp.solvers.base import SolveOptions
from spmilp.source import DEFAULT_MACHINE, load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.units import Cycles

SOLVER = "list"
"""What looks for the plans that prove that something fits."""

SOLVER_WITH_PINS = "cpsat"
"""The same where pins say what the list scheduler does not keep to."""

SECONDS_WITH_PINS = 5.0


def explain(
    source: str | Path | Problem | Result,
    machine: str | Path | MachineFile | Machine | None = None,
    *,
    dim: Mapping[str, int] | None = None,
    passes: str = "",
    time_limit: str | float = 20.0,
    what_if: str | float | None = None,
) -> Explanation:
    """Say why a plan is as slow as it is; or why a problem or a model has none, and what helps.

    Of a problem or a model that fits, the plan of the list scheduler is explained.

    Parameters
    ----------
    source
        A result; a problem or its file; or an ONNX model, ``onnx:NAME`` included.
    machine, dim, passes
        For a model, as :func:`spmilp.solve` has them.
    time_limit
        After which no further change is tried: ``"60s"``, or seconds.
    what_if
        Also search for so long for what a little more of what binds a plan saves, and as long on
        the machine as it is.

    Returns
    -------
    Explanation
        It shows as text of 80 columns; ``data`` has the same with names and numbers.

    Raises
    ------
    SpmilpError
        If a file cannot be used, or an operator cannot be lowered.

    Examples
    --------
    >>> spmilp.explain("net.onnx", "gap8")
    """
    seconds = duration(time_limit)
    if isinstance(source, Result):
        return _of_result(source, seconds, what_if)
    if isinstance(source, Problem) or str(source).endswith(".json"):
        try:
            problem = pipeline.tiled_problem(source, machine, dim=dim)[0].problem
        except PinError:
            # What its pins contradict is to be explained.
            problem = source if isinstance(source, Problem) else read_problem(source)
        return _of_problem(problem, seconds, what_if)
    file = as_machine_file(machine or DEFAULT_MACHINE)
    network, _ = load(str(source), file, dim=dim, passes=passes)
    return _of_model(network, file, seconds, what_if)


def _of_result(result: Result, seconds: float, searched: str | float | None) -> Explanation:
    if result.plan is None and not result.violations:
        return _of_problem(result.problem, seconds, searched)
    said = result.explain()
    if searched is None or result.plan is None:
        return said
    answers = answers_for(result.problem, result.plan, duration(searched))
    return said.with_part("what_if", answers.text(), answers.data())


def _of_problem(problem: Problem, seconds: float, searched: str | float | None) -> Explanation:
    misfit = misfit_of_pins(problem) or misfit_of(problem)
    if misfit is None:
        result = _listed(problem)
        if result.plan is not None:
            return _of_result(result, seconds, searched)
        misfit = _without_proof(problem, result, network_name(problem))
        if problem.pins and _makespan(replace(problem, pins=NO_PINS)) is not None:
            misfit = replace(misfit, cause=Cause.PINS)

    def plan_on(machine: Machine) -> Cycles | None:
        changed = replace(problem, machine=machine)
        return None if misfit_of(changed) is not None else _listed(changed).makespan

    name, trials = network_name(problem), Trials(plan_on, seconds)
    if misfit.cause is Cause.PINS:
        remedies = tuple(without_pins(problem, trials, _makespan))
        return why_it_does_not_fit(name, problem.machine, misfit, remedies, trials.count)
    return _with_remedies(name, problem.machine, misfit, trials)


def _of_model(
    network: Network, file: MachineFile, seconds: float, searched: str | float | None
) -> Explanation:
    def problem_on(machine: Machine) -> Problem:
        return choose_tiles(NetworkOnMachine.of(network, as_machine_file(machine))).problem

    def plan_on(machine: Machine) -> Cycles | None:
        return _listed(problem_on(machine)).makespan

    try:
        problem = problem_on(file.machine)
    except DoesNotFitError as error:
        misfit = misfit_of_tiles(file.machine, error) or _other(network.name, str(error))
    else:
        result = _listed(problem)
        if result.plan is not None:
            return _of_result(result, seconds, searched)
        misfit = misfit_of(problem) or _without_proof(problem, result, network.name)
    trials = Trials(plan_on, seconds)
    smaller = None
    if misfit.task:
        smaller = smaller_tiles(network, file.machine, trials, _makespan)
    return _with_remedies(network.name, file.machine, misfit, trials, smaller)


def _without_proof(problem: Problem, result: Result, name: str) -> Misfit:
    return misfit_in_schedule(problem) or _other(name, result.reason)


def _other(name: str, reason: str) -> Misfit:
    return Misfit(cause=Cause.OTHER, what=name, said=reason, is_proven=False)


def _with_remedies(
    name: str, machine: Machine, misfit: Misfit, trials: Trials, first: Remedy | None = None
) -> Explanation:
    remedies = [] if first is None else [first]
    remedies += remedies_for(machine, misfit, trials)
    return why_it_does_not_fit(name, machine, misfit, remedies, trials.count)


def _makespan(problem: Problem) -> Cycles | None:
    return _listed(problem).makespan


def _listed(problem: Problem) -> Result:
    """Return the checked plan of the list scheduler, or why it finds none.

    Where it does not keep to the pins that there are, another solver has a few seconds.
    """
    if problem.pins.kinds() <= find_solver(SOLVER).keeps:
        answer = pipeline.solve_problem(problem, SOLVER, SolveOptions())
    else:
        limit = SolveOptions(time_limit=SECONDS_WITH_PINS)
        answer = pipeline.solve_problem(problem, SOLVER_WITH_PINS, limit)
    return checked(problem, answer, asked=SOLVER)
