"""Solvers by name, and what each is; their libraries load slowly, so only what is asked for is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from spmilp.errors import SpmilpError
from spmilp.solvers.common.solver import Solver


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverDescription:
    """What a solver or policy is, in a few words each.

    Parameters
    ----------
    name
        Words in capitals stand for others: ``milp:NAME``.
    source
        The publication of which it is the idea; ``own`` where it is none's alone.
    decides
        What it chooses; the rest follows.
    limits
        What it does not take or is not for.
    """

    name: str
    source: str
    decides: str
    limits: str

    @property
    def is_policy(self) -> bool:
        """Whether it does what one publication describes."""
        return self.name in SOLVERS and not self.source.startswith("own")


def _auto() -> Solver:
    from spmilp.solvers.auto import Auto, Member

    return Auto(starts=(Member(name="stream", until=0.4, make=lambda options: _stream()),))


def _list() -> Solver:
    from spmilp.solvers.list_scheduler.solver import ListScheduler

    return ListScheduler()


def _lns() -> Solver:
    from spmilp.solvers.lns.solver import LnsSolver

    return LnsSolver()


def _search() -> Solver:
    from spmilp.solvers.list_scheduler.restarts import PerturbedRestarts

    return PerturbedRestarts()


def _residency() -> Solver:
    from spmilp.solvers.residency.solver import Residency

    return Residency()


def _peak() -> Solver:
    from spmilp.solvers.peak import PeakBisection

    return PeakBisection()


def _cpsat() -> Solver:
    from spmilp.solvers.cpsat.solver import CpSatSolver

    return CpSatSolver()


def _milp(backend: str) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.solvers.milp.solver import MilpOptions, MilpSolver

        return MilpSolver(MilpOptions(backend=backend))

    return make


def _onsram(*, exact: bool) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.policies.onsram.solver import OnSram

        return OnSram(exact=exact)

    return make


def _onsram_eager() -> Solver:
    from spmilp.policies.onsram.eager import EagerOnSram

    return EagerOnSram()


def _cosma() -> Solver:
    from spmilp.policies.cosma.solver import Cosma

    return Cosma()


def _toplib() -> Solver:
    from spmilp.policies.toplib.solver import TopLib

    return TopLib()


def _rammer() -> Solver:
    from spmilp.policies.rammer import Rammer

    return Rammer()


def _cdm(*, exact: bool) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.policies.cdm.solver import Cdm

        return Cdm(exact=exact)

    return make


def _set() -> Solver:
    from spmilp.policies.set.solver import Set

    return Set()


def _stream() -> Solver:
    from spmilp.policies.stream import Stream

    return Stream()


def _tvm(*, hides: bool) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.policies.tvm.solver import Tvm

        return Tvm(hides=hides)

    return make


BACKENDS = ("cbc", "gurobi", "cplex", "scip", "xpress", "copt", "mosek", "glpk")
"""What may solve a MILP instead of HiGHS, when it is installed."""

SOLVERS: dict[str, Callable[[], Solver]] = {
    "auto": _auto,
    "list": _list,
    "search": _search,
    "lns": _lns,
    "residency": _residency,
    "peak": _peak,
    "cpsat": _cpsat,
    "milp": _milp("highs"),
    **{f"milp:{name}": _milp(name) for name in BACKENDS},
    "onsram": _onsram(exact=False),
    "onsram:exact": _onsram(exact=True),
    "onsram:eager": _onsram_eager,
    "cosma": _cosma,
    "rammer": _rammer,
    "tvm": _tvm(hides=True),
    "tvm:serial": _tvm(hides=False),
    "toplib": _toplib,
    "cdm:ilp": _cdm(exact=True),
    "cdm:iterative": _cdm(exact=False),
    "set": _set,
    "stream": _stream,
}


def _greedy(assignment: str, order: str) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.solvers.list_scheduler.solver import ListScheduler

        return ListScheduler(greedy=(assignment, order))

    return make


BELADY = ("contiguous", "layer_by_layer")
"""The pass of the list scheduler whose order is the network's own: what it evicts is all its own
choice."""


@cache
def _all_solvers() -> dict[str, Callable[[], Solver]]:
    from spmilp.solvers.list_scheduler.assignments import ASSIGNMENTS
    from spmilp.solvers.list_scheduler.portfolio import ORDERS

    greedy = {
        f"greedy:{one}/{other}": _greedy(one, other) for one in ASSIGNMENTS for other in ORDERS
    }
    return {**SOLVERS, "belady": _greedy(*BELADY), **greedy}


def solver_names() -> tuple[str, ...]:
    """Return the names that :func:`find_solver` knows; ``greedy:…`` are one-pass baselines."""
    return tuple(_all_solvers())


def hint_takers() -> tuple[str, ...]:
    """Return the names of the solvers that can begin with a plan."""
    milp = (name for name in SOLVERS if name.partition(":")[0] == "milp")
    return ("auto", "search", "lns", "residency", "peak", "cpsat", *milp)


def find_solver(name: str) -> Solver:
    """Return the solver of that name (``auto`` takes the best that there is for the problem).

    Raises
    ------
    SpmilpError
        If there is none.
    """
    solvers = _all_solvers()
    if name not in solvers:
        raise SpmilpError(f"no solver is named {name!r}; there are {', '.join(solvers)}")
    return solvers[name]()


ONSRAM = "Pal et al., OnSRAM, ACM TECS 2022, doi 10.1145/3530909"
CDM = "Venkataramani, Chan and Mitra, CDM, ACM TECS 2019, doi 10.1145/3301308"
TVM = "T. Chen et al., TVM, OSDI 2018, latency hiding"
ONE_DRAM = "one DRAM, where all data begins and ends; one transfer between it and a scratchpad"


def list_solvers() -> tuple[SolverDescription, ...]:
    """Return a description of every solver and policy; families of names have one."""
    return tuple(
        SolverDescription(name=name, source=source, decides=decides, limits=limits)
        for name, source, decides, limits in (
            (
                "auto",
                "own",
                "which of the others take part, in turn, each from the best plan so far; stream "
                "where cores differ",
                "those of its members",
            ),
            (
                "list",
                "own; fused bands after Alwani et al., MICRO 2016",
                "cores, order, addresses and times, task by task, by many rules",
                "no remote reads",
            ),
            (
                "search",
                "own",
                "order and cores, changed at random, each change scheduled by the list scheduler",
                "no remote reads",
            ),
            (
                "lns",
                "own",
                "times, addresses and cores of a plan anew, window by window",
                "the makespan only",
            ),
            (
                "residency",
                "own",
                "what stays in which memory, and the order of the tasks",
                "DRAM traffic or energy; one DRAM; no multicast, no remote reads",
            ),
            ("peak", "own", "everything, in scratchpads that are cut shorter", "the peak only"),
            (
                "cpsat",
                "own",
                "everything at once, with a proof",
                "for up to about a hundred tasks",
            ),
            (
                "milp",
                "own",
                "everything at once, as a mixed-integer program solved by HiGHS",
                "about ten tasks; 16 on one core",
            ),
            (
                "milp:NAME",
                "own",
                f"the same, solved by NAME: {', '.join(BACKENDS)}",
                "as milp; NAME has to be installed",
            ),
            (
                "onsram",
                ONSRAM,
                "which buffers are pinned for their whole lives, by a figure of merit; the order",
                ONE_DRAM,
            ),
            (
                "onsram:exact",
                ONSRAM,
                "which buffers are pinned for their whole lives, by a 0/1 program; the order",
                ONE_DRAM,
            ),
            (
                "onsram:eager",
                ONSRAM,
                "which results are held, by what came of results like them; assumptions of our own",
                ONE_DRAM,
            ),
            (
                "cosma",
                "Li, Gupta and Malik, COSMA, arXiv 2311.18246",
                "order, addresses and spills, at once",
                "DRAM traffic; one core; one result for each task; no scratch; up to 400 buffers",
            ),
            (
                "toplib",
                "Li et al., TOpLib, NPC 2020, doi 10.1007/978-3-030-79478-1_1",
                "which buffers are kept beside the partitions of a coloured interference graph",
                ONE_DRAM,
            ),
            (
                "rammer",
                "Ma et al., Rammer, OSDI 2020",
                "waves of operators; the core of each task, by cycles of tasks alone",
                "no multicast, no remote reads",
            ),
            (
                "cdm:ilp",
                CDM,
                "where buffers have homes and replicas, or stay in DRAM, by a 0/1 program",
                f"{ONE_DRAM}; up to 20,000 variables",
            ),
            ("cdm:iterative", CDM, "the same, move by move", ONE_DRAM),
            (
                "set",
                "Cai et al., SET, ISCA 2023, doi 10.1145/3579371.3589048",
                "cores and order of layers by a tree of cuts in time and space, by annealing",
                "no multicast, no remote reads",
            ),
            (
                "stream",
                "Symons et al., Stream, IEEE TC 2025, arXiv 2212.10612",
                "the set of cores of each layer, fused or not, by a genetic algorithm",
                "no multicast, no remote reads",
            ),
            (
                "tvm",
                TVM,
                "times of loads, tasks and stores, by tokens between stages of two virtual threads",
                ONE_DRAM,
            ),
            (
                "tvm:serial",
                TVM,
                "the same without latency hiding: one after another on each core",
                ONE_DRAM,
            ),
            (
                "belady",
                "Belady, IBM Systems Journal 5(2), 1966",
                "what leaves a scratchpad: what is needed last, weighed by the way back; the rest "
                f"is greedy:{'/'.join(BELADY)}",
                "no multicast, no remote reads",
            ),
            (
                "greedy:ASSIGNMENT/ORDER",
                "list scheduling in one pass",
                "cores, order, addresses and times, by one rule of each kind",
                "no multicast, no remote reads",
            ),
        )
    )
