"""Solvers by name, and what each is; their libraries load slowly, so only what is asked for is."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from spmilp.errors import ArgumentError, SpmilpError
from spmilp.formats import near_matches
from spmilp.solvers.common.solver import Solver


class SolverDescription(NamedTuple):
    """What a solver or policy is, in a few words each, and how it is made.

    Its ``source`` is the publication of which it is the idea, ``own`` where it is none's alone.
    What it does not decide follows. Its ``home`` is a module and a class, made with ``given``.
    """

    source: str
    decides: str
    limits: str
    home: str
    given: Mapping[str, Any] = MappingProxyType({})

    @property
    def is_policy(self) -> bool:
        """Whether it does what one publication describes."""
        return self.home.startswith("spmilp.policies.")

    def make(self, **given: object) -> Solver:
        """Return the solver; its library is loaded."""
        module, _, name = self.home.partition(":")
        made: Solver = getattr(import_module(module), name)(**self.given, **given)
        return made


TVM = "T. Chen et al., TVM, OSDI 2018, latency hiding"
ONE_DRAM = "one DRAM, where all data begins and ends; one transfer between it and a scratchpad"
NO_REMOTE = "no multicast, no remote reads"

BACKENDS = ("cbc", "gurobi", "cplex", "scip", "xpress", "copt", "mosek", "glpk")
"""Solvers of MILPs that may be used in place of HiGHS if they are installed."""

BELADY = ("contiguous", "layer_by_layer")
"""The pass of the list scheduler whose order is the network's own: what it evicts is all its own
choice."""

TAKE_A_HINT = ("auto", "search", "lns", "residency", "peak", "cpsat", "milp", "milp:NAME")
"""Solvers that can begin with a plan."""

_LIST = "spmilp.solvers.schedule.solver:ListScheduler"
_MILP = "spmilp.registry:milp"
_TVM = "spmilp.policies.tvm:Tvm"

_TABLE: dict[str, SolverDescription] = {
    "auto": SolverDescription(
        "own",
        "which of the others take part, in turn, each from the best plan so far",
        "those of its members",
        "spmilp.solvers.auto:Auto",
    ),
    "list": SolverDescription(
        "own; fused bands after Alwani et al., MICRO 2016",
        "cores, order, addresses and times, task by task, by many rules",
        "no remote reads",
        _LIST,
    ),
    "search": SolverDescription(
        "own",
        "order and cores, changed at random, each change scheduled by the list scheduler",
        "no remote reads",
        "spmilp.solvers.schedule.restarts:PerturbedRestarts",
    ),
    "lns": SolverDescription(
        "own",
        "times, addresses and cores of a plan anew, window by window",
        "the makespan only",
        "spmilp.solvers.improve.solver:LnsSolver",
    ),
    "residency": SolverDescription(
        "own",
        "what stays in which memory, and the order of the tasks",
        "DRAM traffic or energy; one DRAM; no multicast, no remote reads",
        "spmilp.solvers.traffic.solver:Residency",
    ),
    "peak": SolverDescription(
        "own",
        "everything, in scratchpads that are cut shorter",
        "the peak only",
        "spmilp.solvers.peak:PeakBisection",
    ),
    "cpsat": SolverDescription(
        "own",
        "everything at once, with a proof",
        "for up to about a hundred tasks",
        "spmilp.solvers.exact.cpsat.solver:CpSatSolver",
    ),
    "milp": SolverDescription(
        "own",
        "everything at once, as a mixed-integer program solved by HiGHS",
        "about ten tasks; 16 on one core",
        _MILP,
        {"backend": "highs"},
    ),
    "milp:NAME": SolverDescription(
        "own",
        f"the same, solved by NAME: {', '.join(BACKENDS)}",
        "as milp; NAME has to be installed",
        _MILP,
    ),
    "onsram": SolverDescription(
        "Pal et al., OnSRAM, ACM TECS 2022, doi 10.1145/3530909",
        "which buffers are pinned for their whole lives, by a figure of merit; the order",
        ONE_DRAM,
        "spmilp.policies.onsram:OnSram",
    ),
    "cosma": SolverDescription(
        "Li, Gupta and Malik, COSMA, arXiv 2311.18246",
        "order, addresses and spills, at once",
        "DRAM traffic; one core; one result for each task; up to 400 buffers",
        "spmilp.policies.cosma:Cosma",
    ),
    "toplib": SolverDescription(
        "Li et al., TOpLib, NPC 2020, doi 10.1007/978-3-030-79478-1_1",
        "which buffers are kept beside the partitions of a coloured interference graph",
        ONE_DRAM,
        "spmilp.policies.toplib:TopLib",
    ),
    "rammer": SolverDescription(
        "Ma et al., Rammer, OSDI 2020",
        "waves of operators; the core of each task, by cycles of tasks alone",
        NO_REMOTE,
        "spmilp.policies.rammer:Rammer",
    ),
    "cdm": SolverDescription(
        "Venkataramani, Chan and Mitra, CDM, ACM TECS 2019, doi 10.1145/3301308",
        "where buffers have homes and replicas, or stay in DRAM, choice by choice",
        ONE_DRAM,
        "spmilp.policies.cdm:Cdm",
    ),
    "set": SolverDescription(
        "Cai et al., SET, ISCA 2023, doi 10.1145/3579371.3589048",
        "cores and order of layers by a tree of cuts in time and space, by annealing",
        NO_REMOTE,
        "spmilp.policies.set:Set",
    ),
    "stream": SolverDescription(
        "Symons et al., Stream, IEEE TC 2025, arXiv 2212.10612",
        "the set of cores of each layer, fused or not, by a genetic algorithm",
        NO_REMOTE,
        "spmilp.policies.stream:Stream",
    ),
    "tvm": SolverDescription(
        TVM,
        "times of loads, tasks and stores, by tokens between stages of two virtual threads",
        ONE_DRAM,
        _TVM,
        {"hides": True},
    ),
    "tvm:serial": SolverDescription(
        TVM,
        "the same without latency hiding: one after another on each core",
        ONE_DRAM,
        _TVM,
        {"hides": False},
    ),
    "belady": SolverDescription(
        "Belady, IBM Systems Journal 5(2), 1966",
        "what leaves a scratchpad: what is needed last, weighed by the way back; the rest is "
        f"greedy:{'/'.join(BELADY)}",
        NO_REMOTE,
        _LIST,
        {"greedy": BELADY},
    ),
    "greedy:ASSIGNMENT/ORDER": SolverDescription(
        "list scheduling in one pass",
        "cores, order, addresses and times, by one rule of each kind",
        NO_REMOTE,
        _LIST,
    ),
}
"""Every solver, in the order in which they are listed; families of names have one entry.

Words in capitals stand for others: ``milp:NAME``.
"""


GROUP = "spmilp.solvers"
"""The group of entry points by which installed packages add solvers and rules."""

_ADDED: dict[str, SolverDescription] = {}

T = TypeVar("T", bound=Callable[..., Any])


def solver(name: str) -> Callable[[T], T]:
    """Return a decorator by which a solver or a rule of your own has a name in this process.

    It stands before a class that derives from :class:`Solver` or :class:`Policy`, or before a rule:
    a function that returns the core of each task of a problem. A package that is installed does the
    same, in every process, by an entry point of the group ``spmilp.solvers``. Raises an
    ``ArgumentError`` if one of the project's own has that name.

    Examples
    --------
    >>> @spmilp.solver("turns")
    ... def turns(problem):
    ...     return [task.index % len(problem.machine.cores) for task in problem.tasks]
    >>> spmilp.solve("net.onnx", solver="turns")
    """

    if name in _TABLE:
        raise ArgumentError(f"solver {name}: there is one of this name; take another name")

    def add(what: T) -> T:
        _ADDED[name] = _of_others(name, "this process", lambda: what)
        _solvers.cache_clear()
        return what

    return add


def _of_others(name: str, source: str, load: Callable[[], Any]) -> SolverDescription:
    given = {"name": name, "load": load}
    return SolverDescription(source, "what its source says", "", "spmilp.registry:own", given)


@cache
def _of_packages() -> dict[str, SolverDescription]:
    """Return the solvers and rules of installed packages, but for names that are taken."""
    found = {}
    for each in entry_points(group=GROUP):
        package = f"package {each.dist.name}" if each.dist else each.value
        if each.name not in _TABLE:
            found[each.name] = _of_others(each.name, package, partial(_loaded, each, package))
    return found


def _loaded(entry: EntryPoint, package: str) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise SpmilpError(
            f"solver {entry.name} of {package}: {entry.value} cannot be loaded: {error}"
        ) from error


def own(name: str, load: Callable[[], Any]) -> Solver:
    """Return a solver of somebody's own, or one that goes by a rule."""
    what = load()
    if isinstance(what, type) and issubclass(what, Solver):
        made: Solver = what()
        made.name = name
        return made
    if not callable(what):
        raise SpmilpError(
            f"solver {name}: {what!r} is neither a class that derives from Solver nor a function "
            "that returns the core of each task"
        )
    from spmilp.policies.by_rule import ByRule

    return ByRule(name, what)


def milp(backend: str) -> Solver:
    """Return the mixed-integer program, to be solved by a backend."""
    from spmilp.solvers.exact.milp.solver import MilpOptions, MilpSolver

    return MilpSolver(MilpOptions(backend=backend))


@cache
def _solvers() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return each name with that of its entry, and what is its own within a family."""
    from spmilp.solvers.schedule.assignments import ASSIGNMENTS
    from spmilp.solvers.schedule.portfolio import ORDERS

    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in list_solvers():
        if name == "milp:NAME":
            found |= {f"milp:{one}": (name, {"backend": one}) for one in BACKENDS}
        elif name == "greedy:ASSIGNMENT/ORDER":
            for rules in product(ASSIGNMENTS, ORDERS):
                found[f"greedy:{'/'.join(rules)}"] = name, {"greedy": rules}
        else:
            found[name] = name, {}
    return found


def list_solvers() -> Mapping[str, SolverDescription]:
    """Return a description of every solver and policy by its name; families of names have one.

    Behind the project's own are those of installed packages and of :func:`solver`.
    """
    return _TABLE | _of_packages() | _ADDED


def solver_names() -> tuple[str, ...]:
    """Return the names that :func:`find_solver` knows; ``greedy:…`` are one-pass baselines."""
    return tuple(_solvers())


def refuse_unknown(name: str, option: str = "solver") -> None:
    """Raise an ``ArgumentError`` about an option if no solver has that name."""
    if name not in _solvers():
        known = f"; there are {', '.join(list_solvers())}"
        near = near_matches(name, solver_names()) or known
        raise ArgumentError(
            f"{option} {name}: no solver of this name{near} (spmilp solvers lists them)",
            is_option=True,
        )


def hint_takers() -> tuple[str, ...]:
    """Return the names of the solvers that can begin with a plan."""
    return tuple(name for name, (entry, _) in _solvers().items() if entry in TAKE_A_HINT)


def find_solver(name: str) -> Solver:
    """Return the solver of that name, or raise an ``ArgumentError`` if there is none."""
    refuse_unknown(name)
    entry, given = _solvers()[name]
    return list_solvers()[entry].make(**given)
