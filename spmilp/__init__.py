"""Map neural networks onto many-core machines with scratchpad memories.

>>> import spmilp
>>> result = spmilp.solve("net.onnx", "mesh4x4", time_limit="60s")
>>> result.timeline()

:func:`solve`
    From a model, or a problem, and a machine to a checked plan: a :class:`Result`.
:class:`Result`, :func:`read`
    Figures, tables and pictures of a plan; saving, replaying and exporting it; reading it again.
:func:`load_machine`
    A machine by name or from a file; its ``replace`` sets some of its numbers anew.
:func:`load_problem`
    A problem from its file.
:class:`ProblemBuilder`
    A problem by hand, by names.
:func:`compare`, :func:`check`, :func:`bound`
    Solvers side by side; what is wrong with a plan; what no plan can beat.
:func:`solver`
    A decorator by which a solver or a rule of your own has a name.
:func:`explain`
    Why a plan is slow; why there is none, and what helps.
:func:`sweep`
    Networks on machines of many sizes, and the smallest machine that is good enough.
:func:`pack`
    Buffers with lifetimes into memories: offsets at the least cost, or what does not fit.
:class:`SpmilpError`
    The base of all errors that say that something given cannot be used.

The line from a model to a checked plan is written out in :mod:`spmilp.pipeline`; along it lie

    frontend        ONNX models: clean-up, shapes, fusion, operators
    machine         descriptions of machines, presets, topologies and routes
    lowering        from operators to tasks, slices and cycles
    tile_selection  which tiles: first choice, cost model, search
    problem, plan   what is decided, and what has been decided
    bounds          what no plan can beat
    solvers         from problems to plans
    packing         offsets for lifetimes, by itself and within solvers
    checker         is a plan valid, free of races, right in its values?
    commands        command lists with events, from plans
    explaining      why a plan takes the time, the room and the traffic that it takes, or is none
    export, report  tables for firmware; timelines, memory maps and the page
    runs            solvers side by side; networks on many machines, on Dask workers
    cli             the command line

and small modules that serve them all. Names are imported when they are first used.
"""

import os
from importlib import import_module

if os.environ.get("SPMILP_UNCOMPILED"):
    import_module("spmilp.uncompiled")

from spmilp.version import __version__ as __version__

TYPE_CHECKING = False
"""As type checkers know it; ``typing`` takes longer to load than all else until signals count."""

if TYPE_CHECKING:
    from spmilp.bounds.best import best_bound as bound
    from spmilp.checker.check import check
    from spmilp.errors import SpmilpError
    from spmilp.explaining.explain import explain
    from spmilp.machine.read import load_machine
    from spmilp.packing.front import pack
    from spmilp.pipeline import solve
    from spmilp.problem.builder import ProblemBuilder
    from spmilp.problem.file import read_problem as load_problem
    from spmilp.registry import solver
    from spmilp.result import Result, read
    from spmilp.runs.compare import compare
    from spmilp.runs.sweep import sweep

__all__ = [
    "ProblemBuilder",
    "Result",
    "SpmilpError",
    "bound",
    "check",
    "compare",
    "explain",
    "load_machine",
    "load_problem",
    "pack",
    "read",
    "solve",
    "solver",
    "sweep",
]

_HOMES = {
    "ProblemBuilder": "spmilp.problem.builder:ProblemBuilder",
    "Result": "spmilp.result:Result",
    "SpmilpError": "spmilp.errors:SpmilpError",
    "bound": "spmilp.bounds.best:best_bound",
    "check": "spmilp.checker.check:check",
    "compare": "spmilp.runs.compare:compare",
    "explain": "spmilp.explaining.explain:explain",
    "load_machine": "spmilp.machine.read:load_machine",
    "load_problem": "spmilp.problem.file:read_problem",
    "pack": "spmilp.packing.front:pack",
    "read": "spmilp.result:read",
    "solve": "spmilp.pipeline:solve",
    "solver": "spmilp.registry:solver",
    "sweep": "spmilp.runs.sweep:sweep",
}


if not TYPE_CHECKING:  # or else type checkers would take every name for an attribute

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'spmilp' has no attribute {name!r}")
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
