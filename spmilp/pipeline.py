"""The line from a model to a checked plan, written out: load, choose tiles, solve, check.

This is the file to read first. :func:`solve` is the line: the command line, the benchmarks, the
comparisons and the notebooks all call it, so that the same arguments give the same plan everywhere.
Each step is one function from one frozen value to the next.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from threading import current_thread, main_thread
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from spmilp.amounts import byte_count, duration, share
from spmilp.checker.check import Verdict, check
from spmilp.errors import ArgumentError, DoesNotFitError, FileError, NoPlanError, PinError
from spmilp.frontend.find import LIGHT_PREFIX, find_model
from spmilp.frontend.graph import Network
from spmilp.frontend.passes import passes_from
from spmilp.hint import Hint, HintedTiles, read_hint, tiles_of
from spmilp.lock import Lock, locked_answer, read_lock
from spmilp.lowering.learned import read_cost_model
from spmilp.lowering.tiling import Tilings
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.memory_limit import memory_watched, why_it_ends
from spmilp.plan.plan import Plan
from spmilp.problem.named_pins import NamedPins, read_pins, refuse_unknown_names, with_pins
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.registry import find_solver, hint_takers, solver_names
from spmilp.report.lasting import Lasting
from spmilp.report.search_log import LogEntry, SearchLog
from spmilp.result import Origin, Result, checked
from spmilp.solvers.base import Progress, SolveOptions, SolverResult
from spmilp.solvers.common.clock import Clock, Step
from spmilp.solvers.common.context import SearchContext, rows_of
from spmilp.tile_selection.coarse import CoarseTilings, refuse_too_many_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import pinned_tilings
from spmilp.tile_selection.mode import Tiles
from spmilp.tile_selection.search import (
    MOST_TASKS_EVALUATED,
    MOST_WITHIN_TIME,
    TileSearch,
    coarse_problem,
    fast_initial_problem,
    first_choice_in_time,
    search_tilings,
)
from spmilp.tile_selection.smaug import smaug_problem
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.units import Bytes

DEFAULT_MACHINE = "mesh4x4"
DEFAULT_SOLVER = "auto"

SHARE_OF_TILES = 0.4
"""Of the time limit, for the search for tile sizes that goes before the solver."""

SHARE_OF_ROOFLINE = 0.05
"""Of the time limit; a roofline that takes longer is not computed unless it is asked for."""

SECONDS_AFTER_AN_INTERRUPT = 1.0
"""For the solver, where an interrupt came before there was a schedule."""

SHARE_WITHOUT_LOCK = 0.5
"""Of the time after tiles are chosen, for the plan that says what a lock costs."""

E = TypeVar("E", bound=StrEnum)
A = TypeVar("A", float, int)

BREAKS_A_PIN = "the plan breaks a pin; the search begins without it"

PinsGiven: TypeAlias = str | Path | Mapping[str, object] | NamedPins | None
"""A file of pins, its fields, or what was read from one."""


class Stage(StrEnum):
    """Steps of :func:`solve`, as its observers hear of them."""

    READING = "reading"
    TILING = "choosing tiles and lowering"
    SOLVING = "solving"
    CHECKING = "checking the plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Callbacks that hear how a solve gets on.

    Parameters
    ----------
    on_stage
        Called when a stage begins.
    on_tiles
        Called with each better value that the search for tiles finds, and its number of tasks.
    on_problem
        Called with the problem before it is solved.
    on_progress
        Called with each improvement of a plan or a bound.
    on_log
        Called with what is better than all before it, be it from the search for tiles or from a
        solver.
    on_warning
        Called with what a user should know of the problem or the hint.
    """

    on_stage: Callable[[Stage], None] = lambda stage: None
    on_tiles: Callable[[int, int], None] = lambda value, tasks: None
    on_problem: Callable[[Problem], None] = lambda problem: None
    on_progress: Callable[[Progress], None] | None = None
    on_log: Callable[[LogEntry], None] = lambda entry: None
    on_warning: Callable[[str], None] = warnings.warn


SILENT = Observer()


def solve(
    model: str | Path | Problem,
    machine: str | Path | MachineFile | Machine | None = None,
    *,
    dim: Mapping[str, int] | None = None,
    solver: str = DEFAULT_SOLVER,
    tiles: str | None = None,
    objective: str | None = None,
    hint: str | Path | Plan | Result | None = None,
    pins: PinsGiven = None,
    lock: str | Path | Result | None = None,
    lock_buffers: str | Iterable[str] = (),
    lock_cost: str | float | None = None,
    time_limit: str | float | None = 60.0,
    memory_limit: str | int | None = None,
    gap: str | float = 0.0,
    seed: int = 0,
    workers: int = 1,
    cost_model: str | Path | None = None,
    passes: str = "",
    observer: Observer = SILENT,
) -> Result:
    """Map a network onto a machine: load, choose tiles, solve, check.

    The arguments are the options of ``spmilp solve``. The same ones give the same plan, with one
    worker and unless the time limit cuts a search short. A ``KeyboardInterrupt`` (in a notebook:
    stop) ends the search; the best plan so far is the answer, if there is one.

    Parameters
    ----------
    model
        An ONNX file, ``onnx:NAME`` for one of the graphs in the ``onnx`` package, a problem file
        (``.json``), or a problem.
    machine
        A preset's name, a YAML file, or a machine; ``mesh4x4`` by default. A problem carries its
        own.
    dim
        Sizes of the model's dynamic dimensions by name: ``{"batch": 1}``.
    solver
        ``auto``, ``list``, ``search``, ``lns``, ``residency``, ``cpsat``, ``milp``, ``bruteforce``
        or another one that ``docs/cli.md`` names.
    tiles
        ``first``: tile sizes by a first estimate; ``search``: by a search that takes 40 to 56 % of
        the time; ``smaug``: the largest that fit, as a published system has them. By default
        ``search`` with the solver ``auto``, else ``first``.
    objective
        What to make small: ``makespan`` (the default), ``dram_traffic``, ``energy``, ``peak_spm``;
        the others break ties. A problem has its own, which this replaces.
    hint
        A plan to begin with: its file or folder, or a result, also of another machine or objective;
        for a model its tiles are tried, too. The answer is never worse, for the first quantity.
    pins
        What the plan has to keep to besides: a YAML file as ``docs/pins.md`` describes it, or its
        fields. A problem keeps those that it has.
    lock
        An earlier plan, its file or folder with the problem beside it, or a result: addresses stay
        as they are in it wherever that is possible, which the result's ``lock`` says. Half of the
        time goes to a plan without it, to know what it costs.
    lock_buffers
        Names of the buffers and tensors that are locked, with ``*`` for anything; all by default.
    lock_cost
        How much longer (or larger) the plan may become for the lock: ``0.05`` or ``"5%"`` of the
        one without it; by default any cost is taken.
    time_limit
        ``"60s"``, ``"5m"``, ``"1h"``, seconds, or ``None`` for no limit.
    memory_limit
        ``"2GiB"``, ``"500MiB"``, bytes, or ``None`` for no limit: of the whole process. When most
        of it is used the search ends with the plan that there is. In the main thread only.
    gap
        Stop when ``(objective - bound) / objective`` is at most this: ``0.01`` or ``"1%"``.
    seed
        Of the search.
    workers
        Threads; 1 makes runs repeatable.
    cost_model
        A file of ``spmilp calibrate``: cycles of tiles as learned from measurements; those of tiles
        outside of these are the machine's, which a warning says.
    passes
        Changes of the passes over the network, with commas between them: ``fuse=tvm`` or
        ``fuse=none``, ``no-batch_norm``, ``no-simplify``, ``no-cse``, ``no-layout``,
        ``no-sharing``.
    observer
        Hears how it gets on.

    Returns
    -------
    Result
        The plan that the checker has accepted, and everything that can be asked of it. Not finding
        a plan is a result too: ``status`` and ``reason`` say why.

    Raises
    ------
    ValueError
        If an argument has a value that it cannot have.
    SpmilpError
        If a file cannot be used, an operator cannot be lowered, or a tile fits no scratchpad.
    NoPlanError
        If all of the memory limit is used.

    Examples
    --------
    >>> result = spmilp.solve("net.onnx", "mesh4x4", time_limit="60s")
    >>> result.makespan, result.bound
    """
    if solver not in solver_names():
        known = ", ".join(solver_names())
        raise ArgumentError(f"solver {solver}: there are {known}", is_option=True)
    from_before = None if hint is None else _hint_for(solver, hint)
    limit = _read("time_limit", duration, "none" if time_limit is None else time_limit)
    default = Tiles.SEARCH if solver == DEFAULT_SOLVER else Tiles.FIRST
    how = default if tiles is None else _one_of(Tiles, "tiles", tiles)
    if how is Tiles.SMAUG and not (hint is lock is None):
        who = "lock" if hint is None else "hint"
        raise ArgumentError(f"tiles smaug: a {who} has its own tiles; leave one of the two out")
    names = (lock_buffers,) if isinstance(lock_buffers, str) else tuple(lock_buffers)
    if lock is None and (names or lock_cost is not None):
        what = "lock-buffers" if names else "lock-cost"
        raise ArgumentError(f"{what}: there is no lock; give the earlier plan, too", is_option=True)
    cost = math.inf if lock_cost is None else _read("lock_cost", share, lock_cost)
    held = None if lock is None else read_lock(lock, names, cost)
    if cost_model is not None:
        machine = _measured_machine(model, machine, cost_model)
    clock = Clock(None if math.isinf(limit) else limit, perf_counter)
    search: TileSearch | Tiles = how
    named = read_pins(pins)
    log = SearchLog(lambda: clock.seconds_gone, observer.on_log)
    with _within_memory(memory_limit, _logged(observer, log)) as heard:
        options = SolveOptions(
            pace=clock.pace,
            gap=_read("gap", share, gap),
            seed=seed,
            workers=workers,
            on_progress=heard.on_progress,
        )
        if how is Tiles.SEARCH:
            seconds = None if math.isinf(limit) else limit * SHARE_OF_TILES
            # The schedules by which tiles are chosen know of no other pins than tiles.
            said = heard.on_tiles if named.are_of_tiles_alone else SILENT.on_tiles
            justifies = solver == DEFAULT_SOLVER
            search = TileSearch(
                seconds=seconds,
                tasks=MOST_TASKS_EVALUATED if seconds is None else MOST_WITHIN_TIME,
                justifies=justifies,
                on_better=said,
            )
        tiled, origin = tiled_problem(
            model,
            machine,
            dim=dim,
            objective=objective,
            pins=named,
            tile_search=search,
            hint=from_before,
            lock=held,
            clock=clock,
            observer=heard,
            passes=passes,
        )
        if origin is not None and cost_model is not None:
            from spmilp.calibration.coverage import what_lies_outside

            for warning in what_lies_outside(origin.network, tiled.problem, str(cost_model)):
                heard.on_warning(warning)
        if has_time_for_roofline(origin, limit):
            clock.reserve(_seconds_for_roofline(origin))
        lasting: Lasting | None = None
        if held is None:
            answer = _answer(tiled, solver, options, clock, heard)
        else:
            answer, lasting = _locked(tiled, held, solver, options, clock, heard)
        heard.on_stage(Stage.CHECKING)
        result = checked(tiled.problem, answer, asked=solver, origin=origin)
    log.note(result.bound_source, result.objective, result.bound)
    return replace(result, seconds=clock.seconds_gone, log=log.entries, lock=lasting)


def problem_of(
    model: str | Path | Problem,
    machine: str | Path | MachineFile | Machine | None = None,
    *,
    dim: Mapping[str, int] | None = None,
    objective: str | None = None,
    pins: PinsGiven = None,
    tile_search: TileSearch | Tiles = Tiles.FIRST,
) -> Problem:
    """Return the problem that :func:`solve` would solve; see there for the arguments.

    Parameters
    ----------
    tile_search
        Limits of a search for tile sizes, or another way to choose them.
    """
    tiled, _ = tiled_problem(
        model, machine, dim=dim, objective=objective, pins=pins, tile_search=tile_search
    )
    return tiled.problem


def tiled_problem(
    model: str | Path | Problem,
    machine: str | Path | MachineFile | Machine | None = None,
    *,
    dim: Mapping[str, int] | None = None,
    objective: str | None = None,
    pins: PinsGiven = None,
    tile_search: TileSearch | Tiles = Tiles.FIRST,
    hint: Hint | None = None,
    lock: Lock | None = None,
    clock: Clock | None = None,
    observer: Observer = SILENT,
    passes: str = "",
) -> tuple[TiledProblem, Origin | None]:
    """Return the problem to solve, and the model that it was made from if there is one.

    Parameters
    ----------
    clock
        Of the whole solve; without one it takes as long as it takes.
    passes
        As for :func:`solve`.
    """
    wanted = None if objective is None else _one_of(Quantity, "objective", objective)
    named = read_pins(pins)
    if isinstance(model, Problem) or str(model).endswith(".json"):
        name = model.name if isinstance(model, Problem) else model
        if machine is not None or dim or passes:
            raise ArgumentError(
                f"{name} is a problem, which carries its machine, its sizes and its passes; leave "
                "machine, dim and passes out, or give the ONNX model"
            )
        observer.on_stage(Stage.READING)
        problem = model if isinstance(model, Problem) else read_problem(model)
        if wanted is not None:
            problem = replace(problem, objective=Objective.of(wanted))
        if problem.objective.first is Quantity.ENERGY and not any(t.energy for t in problem.tasks):
            _refuse_energy_that_is_not_stated(problem.machine)
        if named.tiles:
            raise PinError(f"pins: {name} is a problem, whose tiles are given; leave tiles out")
        pinned = with_pins(problem, named)
        plan = None if hint is None else _plan_within_pins(hint, pinned, observer)
        return TiledProblem(problem=pinned, known=plan), None
    observer.on_stage(Stage.READING)
    network, target = load(model, machine, dim=dim, passes=passes)
    observer.on_stage(Stage.TILING)
    groups = [group.name for group in network.groups]
    refuse_unknown_names(named, target.machine, groups, network.tensors)
    if wanted is Quantity.ENERGY:
        _refuse_energy_that_is_not_stated(target.machine)
    first, tilings = wanted or Quantity.MAKESPAN, pinned_tilings(network, named.tiles)
    subject = _subject(network, target, first, tilings)
    tiles = None if hint is None else tiles_of(hint, subject, target)
    if tiles is not None and tiles.reason:
        observer.on_warning(f"{tiles.reason}; its tiles alone are tried")
    if lock is None:
        tiled = lower_network(network, target, first, tile_search, clock, tiles, tilings)
    else:
        tiled = _with_tiles_of(lock, subject, target, tile_search, clock, tiles, observer)
    tiled = _within_pins(tiled, named, observer)
    return tiled, Origin(model=_lasting(str(model)), dim=dim or {}, network=network)


def _with_tiles_of(
    lock: Lock,
    subject: NetworkOnMachine,
    target: MachineFile,
    tile_search: TileSearch | Tiles,
    clock: Clock | None,
    hint: HintedTiles | None,
    observer: Observer,
) -> TiledProblem:
    """Lower a network in the tiles of an earlier plan, as far as they are its own and fit."""
    network, first = subject.network, subject.objective.first
    tilings = lock.tilings(network) | subject.pinned
    how = Tiles.FIRST if len(tilings) == len(network.groups) else tile_search
    try:
        return lower_network(network, target, first, how, clock, hint, tilings)
    except (DoesNotFitError, PinError) as error:
        observer.on_warning(f"{lock.name}: its tiles are none for this machine: {error}")
        return lower_network(network, target, first, tile_search, clock, hint, subject.pinned)


def _refuse_energy_that_is_not_stated(machine: Machine) -> None:
    """Raise an error where every plan takes 0 fJ."""
    of_bytes = [memory.energy_per_byte for memory in machine.memories]
    of_bytes += [link.energy_per_byte for link in machine.links]
    if any(of_bytes) or any(kind.mac_energy for kind in machine.kinds):
        return
    raise ArgumentError(
        f"objective energy: machine {machine.name} states no energies, so that every plan takes "
        "0 fJ; add mac_energy_fj and energy_fj_per_byte to its file, or choose makespan, "
        "dram_traffic or peak_spm"
    )


def _plan_within_pins(hint: Hint, problem: Problem, observer: Observer) -> Plan | None:
    """Return the plan of a hint, unless it is one of the problem but for the pins."""
    try:
        return hint.plan_of(problem)
    except FileError:
        if not problem.pins:
            raise
        hint.plan_of(replace(problem, pins=NO_PINS))
        observer.on_warning(f"{hint.name}: {BREAKS_A_PIN}")
        return None


def _within_pins(tiled: TiledProblem, named: NamedPins, observer: Observer) -> TiledProblem:
    """Return a problem with pins, of which its schedule knows nothing."""
    problem, known = with_pins(tiled.problem, named), tiled.known
    if problem is tiled.problem:
        return tiled
    if known is not None and check(problem, known):
        observer.on_warning(f"hint: {BREAKS_A_PIN}")
        known = None
    return replace(tiled, problem=problem, schedule=None, known=known)


def load(
    model: str | Path,
    machine: str | Path | MachineFile | Machine | None = None,
    *,
    dim: Mapping[str, int] | None = None,
    passes: str = "",
) -> tuple[Network, MachineFile]:
    """Read a model and a machine, clean the model up, and fuse what the machine's cores can run."""
    # It loads libraries that take a second, which a problem does not need.
    from spmilp.frontend.load import load_network

    target = as_machine_file(DEFAULT_MACHINE if machine is None else machine)
    found = find_model(str(model))
    return load_network(found, dim or {}, target.machine.kinds, passes_from(passes)), target


def _measured_machine(
    model: str | Path | Problem,
    machine: str | Path | MachineFile | Machine | None,
    cost_model: str | Path,
) -> MachineFile:
    """Return the machine with cycles of tiles from a cost model."""
    if isinstance(model, Problem) or str(model).endswith(".json"):
        name = model.name if isinstance(model, Problem) else model
        raise ArgumentError(
            f"{name} is a problem, which carries its cycles; leave the cost model out, or give the "
            "ONNX model"
        )
    target = as_machine_file(DEFAULT_MACHINE if machine is None else machine)
    learned, sha256 = read_cost_model(cost_model)
    return replace(target, machine=learned.on(target.machine, str(cost_model), sha256))


def lower_network(
    network: Network,
    target: MachineFile,
    objective: Quantity = Quantity.MAKESPAN,
    tile_search: TileSearch | Tiles = Tiles.FIRST,
    clock: Clock | None = None,
    hint: HintedTiles | None = None,
    pinned: Tilings | None = None,
) -> TiledProblem:
    """Choose tile sizes and lower to a problem that carries the hashes of both files.

    The first choice is by an estimate; with a ``tile_search`` others are tried and evaluated by the
    list scheduler's plans, the best of which is kept. An interrupt ends that search; before the
    first schedule it passes on. Where there is no time for the first choice, tiles are as large as
    memories allow.
    """
    clock = clock or Clock(None)
    refuse_too_many_tiles(network, target.machine)
    subject = _subject(network, target, objective, pinned)
    if tile_search is Tiles.SMAUG:
        return TiledProblem(problem=smaug_problem(subject))
    search = None if isinstance(tile_search, Tiles) else tile_search
    if tile_search is Tiles.SEARCH:
        search = TileSearch()
    quick, start = (None, None) if hint is None else (hint.tiled, hint.tilings)
    quickest = CoarseTilings(network, target.machine)
    try:
        if search is not None:
            quick = quick or fast_initial_problem(subject, search, clock, quickest)
        first = first_choice_in_time(subject, clock, quickest, has_plan=quick is not None)
    except KeyboardInterrupt:
        if quick is None:
            raise
        return replace(quick, interrupted=True)
    if first is None:
        return quick or coarse_problem(subject, quickest, search)
    if search is None and quick is None and start is None:
        return TiledProblem(problem=first.lower(first.tilings))
    limits = search or TileSearch(problems=1 if start is None else 2)
    return search_tilings(first, limits, quick, clock, start)


def _subject(
    network: Network, target: MachineFile, objective: Quantity, pinned: Tilings | None = None
) -> NetworkOnMachine:
    learned = {kind.measured.sha256 for kind in target.machine.kinds if kind.measured is not None}
    return NetworkOnMachine(
        network=network,
        machine=target.machine,
        objective=Objective.of(objective),
        sources=(
            ("model", network.sha256),
            ("machine", target.sha256),
            *(("cost model", sha256) for sha256 in sorted(learned)),
            *network.passes.sources,
        ),
        pinned=pinned or {},
    )


def has_time_for_roofline(origin: Origin | None, time_limit: float) -> bool:
    """Say whether the roofline of a network takes a small part of the time limit, if any."""
    return _seconds_for_roofline(origin) <= SHARE_OF_ROOFLINE * time_limit


def _seconds_for_roofline(origin: Origin | None) -> float:
    if origin is None:
        return 0.0
    from spmilp.bounds.compulsory import regions_asked

    return Step.ROOFLINE.value * regions_asked(origin.network)


def solve_problem(
    problem: Problem, solver: str, options: SolveOptions, hint: Plan | None = None
) -> SolverResult:
    """Let the solver of that name find a plan; a plan that is known may be its hint."""
    return find_solver(solver).solve(problem, options, hint)


def _locked(
    tiled: TiledProblem,
    lock: Lock,
    solver: str,
    options: SolveOptions,
    clock: Clock,
    observer: Observer,
) -> tuple[SolverResult, Lasting | None]:
    """Solve without the lock in half of the time, then with it."""
    free = _answer(tiled, solver, options, clock, observer, share=SHARE_WITHOUT_LOCK)

    def solve_narrow(problem: Problem, start: Plan | None) -> SolverResult:
        limited = replace(options, time_limit=clock.seconds_left(), on_progress=None)
        return solve_problem(problem, solver, limited, start if solver in hint_takers() else None)

    try:
        return locked_answer(tiled.problem, free, lock, solve_narrow)
    except (KeyboardInterrupt, MemoryError):
        if free.plan is None:
            raise
        return replace(free, interrupted=True), None


def _answer(
    tiled: TiledProblem,
    solver: str,
    options: SolveOptions,
    clock: Clock,
    observer: Observer,
    share: float = 1.0,
) -> SolverResult:
    """Solve in what is left of the time; after an interrupt, take the schedule that there is.

    The same where there is not enough memory.

    Parameters
    ----------
    share
        Of the time that is left.
    """
    known = tiled.result() if tiled.interrupted else None
    if known is not None:
        return known
    verdict: Verdict | None = None
    hint: Plan | None = None
    try:
        observer.on_problem(tiled.problem)
        began = clock.without_compiling()
        verdict = tiled.verdict()
        hint = tiled.plan() if verdict is None else verdict.plan
        if hint is not None and tiled.schedule is not None:
            checking = 0.0 if verdict is None else verdict.seconds
            clock.pace.note(Step.CHECK, rows_of(hint), checking)
            clock.pace.note(Step.PLAN, rows_of(hint), clock.without_compiling() - began - checking)
            tiled.schedule.release()
        observer.on_stage(Stage.SOLVING)
        # A hint has been checked, too, where it was read.
        valid = tiled.known if verdict is None else verdict.plan
        if valid is not None and observer.on_progress is not None:
            value, bound = tiled.value, valid.claim.bound
            observer.on_progress(Progress(incumbent=value, bound=bound, source=tiled.source))
        seconds = SECONDS_AFTER_AN_INTERRUPT if tiled.interrupted else clock.seconds_left(share)
        verdicts = () if verdict is None else (verdict,)
        limited = replace(options, time_limit=seconds, verdicts=verdicts)
        answer = solve_problem(tiled.problem, solver, limited, hint)
        return answer if valid is None else _no_worse(tiled.problem, answer, valid)
    except (KeyboardInterrupt, MemoryError):
        known = tiled.result(verdict, hint)
        if known is None:
            raise
        return known


def _no_worse(problem: Problem, answer: SolverResult, plan: Plan) -> SolverResult:
    """Return a plan that the checker has accepted where a solver has found none as good."""
    context = SearchContext(problem, SolveOptions())
    if answer.plan is not None and context.values(answer.plan) <= context.values(plan):
        return answer
    return context.better(answer, context.found(plan, context.fast_bound))


def _hint_for(solver: str, given: str | Path | Plan | Result) -> Hint:
    if solver not in hint_takers():
        takers = ", ".join(hint_takers())
        raise ArgumentError(
            f"hint: solver {solver} begins with no plan; these do: {takers}", is_option=True
        )
    return read_hint(given)


@dataclass
class _Search:
    """A search whose memory is watched; see :class:`~spmilp.memory_limit.Watched`."""

    has_plan: bool = False
    memory: tuple[Bytes, Bytes] | None = None


def _logged(observer: Observer, log: SearchLog) -> Observer:
    """Return an observer that also notes every improvement in a log."""

    def on_tiles(value: int, tasks: int) -> None:
        log.note(f"tiles: {tasks:,} tasks", value, None)
        observer.on_tiles(value, tasks)

    def on_progress(news: Progress) -> None:
        log.note(news.source, news.incumbent, news.bound)
        if observer.on_progress is not None:
            observer.on_progress(news)

    return replace(observer, on_tiles=on_tiles, on_progress=on_progress)


@contextmanager
def _within_memory(limit: str | int | None, observer: Observer) -> Iterator[Observer]:
    """Watch the memory in use; the observer to be used tells the watch when there is a plan."""
    if limit is None:
        yield observer
        return
    size = _read("memory_limit", byte_count, limit)
    if current_thread() is not main_thread():
        raise ArgumentError("memory_limit: only a search in the main thread can be interrupted")
    search = _Search()

    def on_tiles(value: int, tasks: int) -> None:
        search.has_plan = True
        observer.on_tiles(value, tasks)

    def on_progress(news: Progress) -> None:
        search.has_plan = search.has_plan or news.incumbent is not None
        if observer.on_progress is not None:
            observer.on_progress(news)

    try:
        with memory_watched(size, search):
            yield replace(observer, on_tiles=on_tiles, on_progress=on_progress)
    except KeyboardInterrupt as interrupt:
        if search.memory is None:
            raise
        raise NoPlanError(f"{why_it_ends(search.memory)}; no plan is left") from interrupt


def _lasting(model: str) -> str:
    """Return a model's name that still holds in another folder."""
    return model if model.startswith(LIGHT_PREFIX) else str(Path(model).absolute())


def _one_of(kind: type[E], name: str, given: str) -> E:
    if given not in list(kind):
        raise ArgumentError(f"{name} {given}: there are {', '.join(kind)}", is_option=True)
    return kind(given)


def _read(name: str, reader: Callable[[Any], A], given: str | float) -> A:
    try:
        return reader(given)
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from error
