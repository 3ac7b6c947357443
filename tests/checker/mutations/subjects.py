"""Plans to be changed: of every solver, on machines of every preset's shape, small all of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.machine.read import load_machine
from spmilp.plan.plan import Plan
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.file import read_problem
from spmilp.problem.pins import BufferPin, Pins, TaskPin
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.modulo.stream import stream_of
from tests.checker import worked_example
from tests.checker.mutations.verdicts import Pair, pair
from tests.checker.states import on_chip
from tests.checker.streams import as_stream
from tests.oracle.solver import solver_named
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

INSTANCES = Path(__file__).parents[3] / "instances" / "problems"
PRESETS = (
    *("cell_be", "coolidge", "edge16", "epiphany3", "epiphany4", "gap8", "gap9", "ipu_mk2"),
    *("mesh4x4", "occamy", "set_8x8", "stream_quad", "sw26010_cg", "wormhole", "xdna1"),
)
ROW = 64
"""Bytes of a row of the small network: every preset's alignment divides it."""


def small_network(machine: Machine) -> Problem:
    """Return two layers of three strips with halo rows, a sum in place, and a pooling of two."""
    last = machine.kinds[-1].name
    most = {kind.name: 40 + 7 * kind.index for kind in machine.kinds}
    convolution = {kind: cycles for kind, cycles in most.items() if kind != last} or most
    b = ProblemBuilder(machine, name="small network")
    image = b.input("image", (6, ROW), "int8")
    weight = b.weight("weight", (2, ROW), "int8")
    sums = []
    for strip in range(3):
        first, end = max(0, 2 * strip - 1), min(6, 2 * strip + 3)
        found = b.task(
            f"conv{strip}", reads=[image[first:end], weight],
            writes=(f"a{strip}", (2, ROW), "int8"), cycles=convolution, scratch=32,
            energy=dict.fromkeys(convolution, 900),
        )  # fmt: skip
        summed = b.task(
            f"add{strip}", reads=[found, image[2 * strip : 2 * strip + 2]],
            writes=(f"b{strip}", (2, ROW), "int8"), cycles=most,
            in_place=[(found, f"b{strip}")], after=[f"conv{strip - 1}"] if strip else [],
        )  # fmt: skip
        sums.append(summed)
    for half in range(2):
        reads = [sums[half], sums[half + 1][0:1]]
        pooled = b.task(
            f"pool{half}", reads=reads, writes=(f"y{half}", (1, ROW), "int8"), cycles=most
        )
        b.output(pooled, tensor=("y", (2, ROW)), at=(half, 0))
    return b.build()


def tightened(machine: Machine) -> Machine:
    """Return a machine of small scratchpads and DRAM; every second engine is pipelined."""

    def small(memory: Memory) -> Memory:
        if memory.kind is MemoryKind.DRAM:
            return replace(memory, size=1024 * ROW)
        if memory.kind is not MemoryKind.SPM or memory.size is None:
            return memory
        reserved = max((taken.end for taken in memory.reserved), default=0)
        return replace(memory, size=min(memory.size, reserved + 12 * ROW))

    engines = tuple(replace(one, pipelined=one.index % 2 == 0) for one in machine.engines)
    return replace(machine, memories=tuple(map(small, machine.memories)), engines=engines)


def planned(problem: Problem, solver: str, seconds: float | None = None) -> Plan:
    """Return a solver's plan; without a time limit always the same one.

    With one it gets more time if it finds none, as on a machine that has other work.
    """
    for times in (1, 10, 100):
        limit = None if seconds is None else times * seconds
        plan = solver_named(solver).solve(problem, SolveOptions(time_limit=limit, seed=0)).plan
        if plan is not None:
            return plan
    raise ValueError(f"{solver} has no plan of {problem.name}")


def on_preset(name: str) -> Pair:
    """Return the list scheduler's plan of the small network on a preset."""
    problem = small_network(tightened(load_machine(name).machine))
    return pair(problem, planned(problem, "list"))


def of_instance(name: str) -> Pair:
    """Return the list scheduler's plan of an instance."""
    problem = read_problem(INSTANCES / f"{name}.json")
    return pair(problem, planned(problem, "list"))


def of_tiny(solver: str, number: int, seconds: float | None = None) -> Pair:
    """Return a solver's plan of a tiny random problem."""
    problem = tiny_problem(number, most_tasks=4)
    return pair(problem, planned(problem, solver, seconds))


def of_chain(solver: str) -> Pair:
    """Return a solver's plan of strips with halo rows on two scratchpads."""
    problem = chain(star(2, 900), layers=2, strips=2)
    return pair(problem, planned(problem, solver, seconds=0.5))


def stream_on_mesh() -> Pair:
    """A stream of which three inferences run at a time, one weight permanent."""
    problem = small_network(load_machine("mesh4x4").machine)
    return pair(problem, as_stream(problem, planned(problem, "list"), 180, Random(1)))


def stream_on(name: str) -> Pair:
    """The shortest period that the list scheduler's plan of the small network has on a preset."""
    problem = small_network(tightened(load_machine(name).machine))
    return pair(problem, stream_of(problem, planned(problem, "list")))


def pinned_by_hand() -> Pair:
    """The plan made by hand, which keeps to all of these."""
    pins = Pins(
        tasks=(
            TaskPin(task=0, cores=(0,), not_before=49, not_after=69),
            TaskPin(task=2, cores=(1, 2)),
            TaskPin(task=4, not_before=150),
        ),
        buffers=(
            BufferPin(buffer=1, memories=(3,)),
            BufferPin(buffer=2, memories=(2, 3)),
            BufferPin(buffer=3, memories=(2,), address=192),
            BufferPin(buffer=4, memories=(2,), address=192, resident=True),
            BufferPin(buffer=5, memories=(1, 3)),
        ),
    )
    return pair(replace(worked_example.PROBLEM, pins=pins), worked_example.PLAN)


STREAMED = ("gap9", "edge16", "cell_be", "stream_quad", "coolidge")
"""Machines whose streams are compared, too."""

SUBJECTS: dict[str, Callable[[], Pair]] = {
    "worked example": lambda: pair(worked_example.PROBLEM, worked_example.PLAN),
    **{name: partial(on_preset, name) for name in PRESETS},
    "chain by search": partial(of_chain, "search"),
    "chain by lns": partial(of_chain, "lns"),
    "chain by auto": partial(of_chain, "auto"),
    "chain by residency": partial(of_chain, "residency"),
    "multicast by cpsat": partial(of_tiny, "cpsat", 199),
    "remote reads by cpsat": partial(of_tiny, "cpsat", 41),
    "in place by cpsat": partial(of_tiny, "cpsat", 121),
    "spill by milp": partial(of_tiny, "milp", 43),
    "shared memory by bruteforce": partial(of_tiny, "bruteforce", 78),
    "pins by hand": pinned_by_hand,
    "stream": stream_on_mesh,
    "state": lambda: pair(*on_chip()),
}
MORE: dict[str, Callable[[], Pair]] = {
    **{f"stream on {name}": partial(stream_on, name) for name in STREAMED},
    "multicast of four tasks by cpsat": partial(of_tiny, "cpsat", 656, 5.0),
    **{
        name: partial(of_instance, name)
        for name in (
            "dense-12t-3c-crossbar-multicast-ample-balanced",
            "stages-24t-4c-crossbar-staged-tight-compute",
            "branch-15t-4c-mesh2x2-remote-tight-balanced",
            "mlp-8t-4c-bus-shared4-tight-compute",
            "residual-8t-2c-crossbar-verytight-balanced",
            "residual-6t-1c-tight-balanced",
            "attention-32t-4c-crossbar-vector-ample-compute",
            "mlp-24t-4c-ring-tight-balanced",
            "layers-36t-4c-2kinds",
        )
    },
}
"""Plans that take longer to make or to check; for runs outside the suite."""
