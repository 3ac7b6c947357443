"""Valid plans of small problems that together use everything that the format has."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from spmilp.machine.machine import Machine
from spmilp.machine.read import read_machine
from spmilp.plan.plan import Claim, Plan
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem, Task
from tests.checker import worked_example
from tests.checker.mutations.subjects import pinned_by_hand, planned, small_network, stream_on_mesh
from tests.checker.mutations.verdicts import Pair, pair
from tests.checker.states import on_chip
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

Made: TypeAlias = tuple[Problem, Callable[[], Plan]]
"""A problem, and what makes a plan of it, where none is kept."""

TORUS = b"""
name: torus of six cores
topology: {type: torus, columns: 3, rows: 2, rate_bytes_per_cycle: "5/2", latency_cycles: 2}
core_kinds: {core: {launch_cycles: 4}}
scratchpads:
  - size_bytes: 896
    alignment_bytes: 32
    reserved_byte_ranges: [[0, 64], [512, 576]]
    cores: {core: 1}
    dma:
      - reaches: [dram, "spm*"]
        channels: 2
        setup_cycles: 3
        pipelined: true
        rate_bytes_per_cycle: 4
        dimensions: 3
dram:
  - {sites: [r_0_0, r_2_1], rate_bytes_per_cycle: 6, latency_cycles: 5}
remote_reads: {cycles_per_byte_hop: "1/32", longest_route_links: 4}
"""
POOLS = b"""
name: two pools and a vector core
topology: {type: crossbar, rate_bytes_per_cycle: 8, latency_cycles: 1, energy_fj_per_byte: 3}
core_kinds: {matrix: {launch_cycles: 4}, vector: {launch_cycles: 2}}
scratchpads:
  - size_bytes: 1024
    alignment_bytes: 16
    energy_fj_per_byte: 1
    cores: {matrix: 2}
    count: 2
    dma: [{reaches: [l2], channels: 2, setup_cycles: 2, rate_bytes_per_cycle: 4, controller: mchan}]
  - name: vec
    size_bytes: 768
    alignment_bytes: 16
    cores: {vector: 1}
    dma: [{reaches: [l2], setup_cycles: 2, rate_bytes_per_cycle: 4, controller: mchan}]
shared:
  - name: l2
    sites: [xbar]
    size_bytes: 4096
    alignment_bytes: 16
    energy_fj_per_byte: 5
    dma: [{name: top, reaches: [dram], setup_cycles: 6, pipelined: true, rate_bytes_per_cycle: 8}]
dram:
  - sites: [xbar]
    rate_bytes_per_cycle: 4
    latency_cycles: 9
    size_bytes: 65536
    alignment_bytes: 8
    energy_fj_per_byte: 40
"""
WORDS = b"""
name: two tiles whose DMA counts in words
topology: {type: bus, rate_bytes_per_cycle: 4, latency_cycles: 1}
core_kinds: {core: {}}
scratchpads:
  - size_bytes: 8192
    alignment_bytes: 32
    cores: {core: 1}
    count: 2
    dma:
      - reaches: [dram, "spm*"]
        rate_bytes_per_cycle: 4
        longest_bytes: 4096
        congruence_bytes: 4
        dimensions: 4
        controller: aie_bd
dram: [{sites: [bus], rate_bytes_per_cycle: 4, alignment_bytes: 4}]
"""


def _machine(text: bytes) -> Machine:
    return read_machine(text, "conformance").machine


def _network(text: bytes) -> Made:
    problem = small_network(_machine(text))
    return problem, partial(planned, problem, "list")


def _boxes() -> Made:
    """Boxes of three axes, whose copies have loops on both sides, in words and in descriptors."""
    b = ProblemBuilder(_machine(WORDS), name="boxes", objective=Quantity.DRAM_TRAFFIC)
    x = b.input("x", (6, 8, 16), "float32")
    for half in range(2):
        part = x[3 * half : 3 * half + 3, 2:6, 0:8]
        y = b.task(
            f"scale{half}", reads=[part], writes=(f"y{half}", (3, 4, 8), "float32"), cycles=90,
            in_place=[(part, f"y{half}")],
        )  # fmt: skip
        z = b.task(
            f"sum{half}", reads=[y[0:2], y[1:3, 1:3]], writes=(f"z{half}", (2, 4, 4), "float32"),
            cycles=60, scratch=100,
        )  # fmt: skip
        b.output(z, tensor=("z", (4, 8, 8)), at=(2 * half, 4 * half, 2))
    problem = b.build()
    return problem, partial(planned, problem, "list")


def _columns(rows: int, width: int, controller: str | None, dtype: str = "float32") -> Made:
    """Eight elements of each row of a wide tensor."""
    machine = _machine(WORDS)
    engines = tuple(replace(e, controller=controller, congruence=1) for e in machine.engines)
    b = ProblemBuilder(replace(machine, engines=engines), name="columns")
    x = b.input("x", (rows, width), dtype)
    y = b.task("t", reads=[x[:, 1:9]], writes=("y", (rows, 8), dtype), cycles=20)
    b.output(y)
    problem = b.build()
    return problem, partial(planned, problem, "list")


def _spill() -> Made:
    """One scratchpad that cannot hold what is needed again."""
    b = ProblemBuilder(star(1, 512), name="spill", objective=Quantity.DRAM_TRAFFIC)
    x, w = b.input("x", (192,), "int8"), b.weight("w", (64,), "int8")
    a = b.task("a", reads=[x, w], writes=("a", (192,), "int8"), cycles=30)
    c = b.task("c", reads=[x], writes=("c", (256,), "int8"), cycles=30, after=["a"])
    d = b.task("d", reads=[c], writes=("d", (128,), "int8"), cycles=30, scratch=64)
    e = b.task("e", reads=[a, d], writes=("e", (128,), "int8"), cycles=30)
    b.output(e)
    problem = b.build()
    return problem, partial(planned, problem, "list")


def _tiny(number: int) -> Made:
    """An optimal plan of a tiny random problem, found by trying all."""
    problem = tiny_problem(number)
    return problem, partial(planned, problem, "bruteforce")


def _chain() -> Made:
    problem = chain(star(2, 900), layers=2, strips=2)
    return problem, partial(planned, problem, "list")


def _without_data() -> Made:
    """Tasks that only wait for each other."""
    machine = replace(worked_example.MACHINE, links=(), engines=(), remote=None)
    cycles = ((3, None), (2, 5), (None, 4), (1, 1))
    tasks = tuple(
        Task(index=i, name=f"t{i}", cycles=each, after=(0,) * (i == 3))
        for i, each in enumerate(cycles)
    )
    problem = Problem(
        name="without data", machine=machine, tasks=tasks, objective=Objective.of(Quantity.MAKESPAN)
    )
    return problem, partial(planned, problem, "list")


def _nothing() -> Made:
    """A problem without tasks has a plan without rows."""
    links = tuple(replace(link, rate=Fraction(1, 3)) for link in worked_example.MACHINE.links)
    problem = Problem(
        name="nothing to do \u03bb", machine=replace(worked_example.MACHINE, links=links), tasks=()
    )
    claim = Claim(makespan=0, dram_traffic=0, energy=0, peak_spm=0, bound=0, bound_source="no task")
    return problem, lambda: Plan(placements=(), claim=claim, solver="hand")


BASES: dict[str, tuple[str, Callable[[], Made]]] = {
    "worked-example": (
        "by hand: staging through a shared memory, multicast, a remote read, a sum in place, a "
        "spill and its reload, a weight in a scratchpad that is copied to another one, scratch, "
        "two kinds of core of which one shares a scratchpad, sources that end when all is sent, "
        "and a pipelined channel that takes the next transfer then",
        lambda: (worked_example.PROBLEM, lambda: worked_example.PLAN),
    ),
    "multicast": ("one transfer to two scratchpads", partial(_tiny, 225)),
    "remote": ("an operand is read in another scratchpad, another in place", partial(_tiny, 351)),
    "staged": ("everything stops in a shared memory; two kinds", partial(_tiny, 56)),
    "spill": ("a result goes to DRAM and comes back; objective DRAM traffic", _spill),
    "chain": ("strips with halo rows that are copied between scratchpads", _chain),
    "torus": (
        "xy routes with wrap-around, a DRAM with two ports, two reserved ranges, rates that are "
        "fractions",
        partial(_network, TORUS),
    ),
    "pools": (
        "pools of two cores, a vector core, a shared memory, a bounded DRAM, energies, controllers",
        partial(_network, POOLS),
    ),
    "boxes": ("boxes of three axes of 4-byte elements, a controller that counts in words", _boxes),
    "sixteen-runs": (
        "strides that no descriptor holds: 16 runs, as many descriptors as one transfer may need",
        partial(_columns, 16, 8193, "aie_bd"),
    ),
    "seventeen-rows": (
        "17 runs at the largest stride that a descriptor holds",
        partial(_columns, 17, 8192, "aie_bd"),
    ),
    "without-data": ("tasks that only wait for each other, on two kinds of core", _without_data),
    "nothing": ("no task at all, a name beyond ASCII", _nothing),
}
"""What is special about each plan, and what makes it."""

PINNED: tuple[str, Callable[[], Pair]] = (
    "pins: cores, times, memories, an address, a buffer that is resident until its last reader has "
    "ended and takes over the bytes of another one with an address",
    pinned_by_hand,
)

STREAM: tuple[str, Callable[[], Pair]] = (
    "a stream: a prologue with a weight that is permanent, three inferences at a time, residencies "
    "and tensors with several instances, a sum in place",
    stream_on_mesh,
)

STATE: tuple[str, Callable[[], Pair]] = (
    "a stream whose state stays on the chip, in two instances, and comes from DRAM in the prologue",
    lambda: pair(*on_chip()),
)

WITHOUT_CONTROLLER: dict[str, Callable[[], Made]] = {
    "seventeen-runs": partial(_columns, 17, 8193, None),
    "odd-bytes": partial(_columns, 4, 33, None, "int8"),
}
"""Plans that are invalid as soon as the engines name their controller."""
