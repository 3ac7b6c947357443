"""What is to be mapped, and what is known of it before a solver begins: its tiles and a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TypeAlias

from spmilp.bounds.deadlines import impossible_with_any_tiles
from spmilp.calibration import what_lies_outside, with_learned_cycles
from spmilp.checker.check import check
from spmilp.errors import ArgumentError, DoesNotFitError, FileError, PinError
from spmilp.frontend.find import LIGHT_PREFIX, find_model
from spmilp.frontend.graph import Network
from spmilp.frontend.passes import passes_from
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.options import DEFAULT_SOLVER, Options
from spmilp.problem.file import read_problem
from spmilp.problem.named_pins import with_pins
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.problem.several import Member
from spmilp.quantities import input_values
from spmilp.result import Origin
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import pinned_tilings, tilings_still_there
from spmilp.tile_selection.settings import TileOptions, Tiles
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.warm_start import tiles_of
from spmilp.watch import SILENT, Observer, Stage, Watch

Model: TypeAlias = str | Path | Problem | Sequence[str | Path]
"""An ONNX or TensorFlow Lite file, ``onnx:NAME``, a problem file, a problem; several models."""

MachineGiven: TypeAlias = str | Path | MachineFile | Machine | None
"""A preset's name, a file, or a machine; ``None`` for :data:`DEFAULT_MACHINE`."""

DEFAULT_MACHINE = "mesh4x4"

BREAKS_A_PIN = "the plan breaks a pin; the search begins without it"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemSource:
    """A problem with its objective and all pins.

    Of ``streams``, it is the problem of one inference.
    """

    problem: Problem
    origin: None = None
    streams: bool = False

    def start(self, options: Options, watch: Watch) -> TiledProblem:
        """Return the problem, with the hint's plan unless that breaks a pin."""
        problem, hint = self.problem, options.hint
        if hint is None:
            return TiledProblem(problem=problem)
        try:
            return TiledProblem(problem=problem, known=hint.plan_of(problem))
        except FileError:
            if not problem.pins:
                raise
            hint.plan_of(replace(problem, pins=NO_PINS))
            watch.observer.on_warning(f"{hint.name}: {BREAKS_A_PIN}")
            return TiledProblem(problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkSource:
    """A network, and the machine that it is for."""

    origin: Origin
    subject: NetworkOnMachine
    target: MachineFile
    streams: bool = False

    def start(self, options: Options, watch: Watch) -> TiledProblem:
        """Return its problem once tiles are chosen, perhaps with a plan."""
        warn, subject = watch.observer.on_warning, self.subject
        watch.observer.on_stage(Stage.TILING)
        start, planned = None, None
        if options.hint is not None:
            start, planned = tiles_of(options.hint, subject, self.target, warn)
        how = TileOptions(
            how=options.tiles,
            justifies=options.solver == DEFAULT_SOLVER,
            period=(options.period or 1)
            if self.streams and options.solver == DEFAULT_SOLVER
            else None,
        )
        # The schedules by which tiles are chosen know of no other pins than tiles.
        if options.pins.are_of_tiles_alone:
            how = replace(how, on_better=watch.better_tiles)
        tiled: TiledProblem | None = None
        if options.lock is not None:
            tilings = tilings_still_there(options.lock.problem, subject.network) | subject.pinned
            within = replace(subject, pinned=tilings)
            is_whole = len(tilings) == len(subject.network.groups)
            try:
                within_lock = replace(how, how=Tiles.FIRST) if is_whole else how
                tiled = choose_tiles(within, within_lock, watch.clock, known=planned, start=start)
            except (DoesNotFitError, PinError) as error:
                warn(f"{options.lock.hint.name}: its tiles cannot be used on this machine: {error}")
        tiled = tiled or choose_tiles(subject, how, watch.clock, known=planned, start=start)
        if options.cost_model is not None:
            given = str(options.cost_model)
            for warning in what_lies_outside(subject.network, tiled.problem, given):
                warn(warning)
        problem, known = with_pins(tiled.problem, options.pins), tiled.known
        if problem is tiled.problem:
            return tiled
        if known is not None and check(problem, known):
            warn(f"hint: {BREAKS_A_PIN}")
            known = None
        # Its schedule knows nothing of pins.
        return replace(tiled, problem=problem, schedule=None, known=known, stream=None)


def what_is_mapped(
    model: Model, machine: MachineGiven, options: Options, observer: Observer = SILENT
) -> ProblemSource | NetworkSource:
    """Read a problem, or a model and a machine.

    Raises an ``ArgumentError`` if options are for models and this is a problem, or if the objective
    is energy and the machine states no energies; another ``SpmilpError`` if a file cannot be used,
    an operator cannot be lowered, or pins cannot be kept.
    """
    if not isinstance(model, str | Path | Problem):
        models = tuple(map(str, model))
        if len(models) != 1:
            return _network_source(models, machine, options, observer)
        (model,) = models
    if not isinstance(model, Problem) and not str(model).endswith(".json"):
        return _network_source((str(model),), machine, options, observer)
    name = model.name if isinstance(model, Problem) else model
    if options.cost_model is not None:
        raise ArgumentError(
            f"{name} is a problem, which carries its cycles; leave the cost model out, or give the "
            "ONNX model"
        )
    of_model = options.dim or options.input or options.passes or options.rate or options.deadline
    of_model = of_model or options.state
    if machine is not None or of_model:
        raise ArgumentError(
            f"{name} is a problem, which carries its machine, its sizes and its passes; leave "
            "machine, dim, input, rate, deadline, state and passes out, or give the ONNX model"
        )
    observer.on_stage(Stage.READING)
    problem = model if isinstance(model, Problem) else read_problem(model)
    if options.objective is not None:
        problem = replace(problem, objective=Objective.of(options.objective))
    streams = problem.objective.first is Quantity.PERIOD
    if streams:
        _refuse_lock(options)
        problem = replace(problem, objective=Objective())
    if problem.objective.first is Quantity.ENERGY and not any(t.energy for t in problem.tasks):
        _refuse_energy_that_is_not_stated(problem.machine)
    if options.pins.tiles:
        raise PinError(f"pins: {name} is a problem, whose tiles are given; leave tiles out")
    return ProblemSource(problem=with_pins(problem, options.pins), streams=streams)


def _network_source(
    models: tuple[str, ...], machine: MachineGiven, options: Options, observer: Observer
) -> NetworkSource:
    target = as_machine_file(DEFAULT_MACHINE if machine is None else machine)
    if options.cost_model is not None:
        target = replace(target, machine=with_learned_cycles(target.machine, options.cost_model))
    observer.on_stage(Stage.READING)
    is_joined = len(models) != 1 or bool(options.rate or options.deadline)
    given, passes, state = options.input, options.passes, options.state
    if is_joined and state:
        raise ArgumentError(
            f"state {next(iter(state))}: states of several networks are not known; give one "
            "network without rate and deadline, or leave state out",
            is_option=True,
        )
    if is_joined:
        network = _joined(models, target, options)
    else:
        network, target = load(
            models[0], target, dim=options.dim, input=given, passes=passes, state=state
        )
    repeats = is_joined or bool(state)
    streams = options.objective is Quantity.PERIOD or (repeats and options.objective is None)
    if streams:
        _refuse_lock(options)
    if options.objective is Quantity.ENERGY:
        _refuse_energy_that_is_not_stated(target.machine)
    empty = [one.name for one in network.tensors.values() if one.shape_only and one.values is None]
    if empty:
        names = ", ".join(empty[:3]) + " and others" * (len(empty) > 3)
        observer.on_warning(
            f"{', '.join(models)}: no values for {names} in the model or a file beside it; the "
            "plan is one of shapes, which cannot be replayed"
        )
    for late in impossible_with_any_tiles(network, target.machine, streams=streams):
        observer.on_warning(late)
    # The names have to hold in another folder, too.
    paths = [one if one.startswith(LIGHT_PREFIX) else str(Path(one).absolute()) for one in models]
    pinned = pinned_tilings(network, options.pins.tiles)
    objective = Quantity.MAKESPAN if streams else options.objective or Quantity.MAKESPAN
    return NetworkSource(
        origin=Origin(
            model=tuple(paths) if is_joined else paths[0], dim=options.dim, network=network
        ),
        subject=NetworkOnMachine.of(network, target, objective, pinned),
        target=target,
        streams=streams,
    )


def _joined(models: tuple[str, ...], target: MachineFile, options: Options) -> Network:
    """Read several models as one network, each by the name of its file."""
    from spmilp.frontend.load import load_networks

    if not models:
        raise ArgumentError("there is no model; give one or more")
    members: dict[Path, Member] = {}
    for file in map(find_model, models):
        if file.suffix == ".json":
            raise ArgumentError(
                f"{file} is a problem, which goes with no others; give its ONNX model"
            )
        name, rates, deadlines = file.stem, options.rate, options.deadline
        again = next((other for other in members if other.stem == name), None)
        if again is not None:
            raise ArgumentError(
                f"{again} and {file} are both called {name}; for several inferences of one network "
                f"give it once, with --rate {name}=2, and rename one of two different ones"
            )
        members[file] = Member(name=name, rate=rates.get(name, 1), deadline=deadlines.get(name))
    known = {one.name for one in members.values()}
    for option, given in (("rate", options.rate), ("deadline", options.deadline)):
        for name in given.keys() - known:
            raise ArgumentError(
                f"{option} {name}: there is no such network; there are {', '.join(sorted(known))}",
                is_option=True,
            )
    begins = [b for one in members.values() for b in {one.constants, *one.inferences}]
    if twice := next((one for one in begins if begins.count(one) > 1), None):
        raise ArgumentError(f"a file is called as an inference of another one, {twice}; rename it")
    values, passes = input_values(options.input), passes_from(options.passes)
    # Schedulers take operators as they stand, so what is due first stands first.
    due = sorted(members.items(), key=lambda one: one[1].deadline or inf)
    return load_networks(dict(due), options.dim, target.machine, passes, values)


def load(
    model: str | Path,
    machine: MachineGiven = None,
    *,
    dim: Mapping[str, int] | None = None,
    input: Mapping[str, object] | None = None,
    passes: str = "",
    state: Mapping[str, str] | None = None,
) -> tuple[Network, MachineFile]:
    """Read a model and a machine, clean the model up, and fuse what the machine's cores can run."""
    # It loads libraries that take a second, which a problem does not need.
    from spmilp.frontend.load import load_network

    target = as_machine_file(DEFAULT_MACHINE if machine is None else machine)
    found = find_model(str(model))
    on, values = passes_from(passes), input_values(input)
    return load_network(found, dim or {}, target.machine, on, values, state or {}), target


def _refuse_lock(options: Options) -> None:
    if options.lock is not None:
        raise ArgumentError("lock: a stream has addresses of its own; leave lock or period out")


def _refuse_energy_that_is_not_stated(machine: Machine) -> None:
    """Raise an error if the machine states no energies: every plan would take 0 fJ."""
    of_bytes = [memory.energy_per_byte for memory in machine.memories]
    of_bytes += [link.energy_per_byte for link in machine.links]
    if any(of_bytes) or any(kind.mac_energy for kind in machine.kinds):
        return
    raise ArgumentError(
        f"objective energy: machine {machine.name} states no energies, so that every plan takes "
        "0 fJ; add mac_energy_fj and energy_fj_per_byte to its file, or choose makespan, "
        "dram_traffic or peak_spm"
    )
