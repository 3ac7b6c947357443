"""Classes and tightness of problems, by figures that can be followed by hand."""

from fractions import Fraction

import pytest

from benchmarks.bench.kinds import Character, Kind, character_of, most_waiting
from spmilp.machine.machine import Core, CoreKind, Engine, Link, Machine, Memory, MemoryKind
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task

SPM = 400


def chain(cycles: int) -> Problem:
    """Return tasks 0 → 1 → 2 on two cores; 1 reads 200 B of DRAM, at 2 B per cycle."""
    machine = Machine(
        name="two",
        memories=(
            Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None),
            *(Memory(index=i, name=f"spm{i}", kind=MemoryKind.SPM, size=SPM) for i in (1, 2)),
        ),
        kinds=(CoreKind(index=0, name="core"),),
        cores=tuple(Core(index=i, name=f"core{i}", kind=0, memory=i + 1) for i in (0, 1)),
        links=(
            Link(index=0, source="dram", target="hub", rate=Fraction(2)),
            Link(index=1, source="hub", target="dram", rate=Fraction(2)),
            *(Link(index=1 + i, source="hub", target=f"spm{i}", rate=Fraction(8)) for i in (1, 2)),
            *(Link(index=3 + i, source=f"spm{i}", target="hub", rate=Fraction(8)) for i in (1, 2)),
        ),
        engines=tuple(
            Engine(index=i, name=f"dma{i}", owner=i + 1, rate=Fraction(8)) for i in (0, 1)
        ),
    )
    buffers = (
        Buffer(index=0, name="w", kind=BufferKind.WEIGHT, shape=(200,), starts_in=0,
               place=Place(0, (0,))),
        Buffer(index=1, name="a", kind=BufferKind.INTERMEDIATE, shape=(300,)),
        Buffer(index=2, name="b", kind=BufferKind.INTERMEDIATE, shape=(100,)),
    )  # fmt: skip
    return Problem(
        name="chain",
        machine=machine,
        tensors=(
            DramTensor(index=0, name="w", kind=BufferKind.WEIGHT, memory=0, shape=(200,), item=1),
        ),
        buffers=buffers,
        slices=tuple(
            Slice(index=b.index, buffer=b.index, start=(0,), extent=b.shape, bytes=b.bytes)
            for b in buffers
        ),
        tasks=(
            Task(index=0, name="first", cycles=(cycles,), writes=(1,)),
            Task(index=1, name="second", cycles=(cycles,), reads=(0, 1), writes=(2,)),
            Task(index=2, name="third", cycles=(cycles,), reads=(1, 2)),
        ),
    )


@pytest.mark.parametrize(
    ("cycles", "kind"),
    [(20, Kind.TRAFFIC), (60, Kind.BALANCED), (160, Kind.COMPUTE)],
)
def test_the_larger_of_work_and_traffic_names_the_class(cycles: int, kind: Kind) -> None:
    found = character_of(chain(cycles))

    # Three tasks on two cores, one of which runs two of them; 200 B at 2 B per cycle.
    assert (found.work, found.traffic) == (2 * cycles, 100)
    assert found.kind == kind


def test_a_factor_of_two_is_balanced_still() -> None:
    assert Character(work=50, traffic=100, pressure=0).kind is Kind.BALANCED
    assert Character(work=49, traffic=100, pressure=0).kind is Kind.TRAFFIC
    assert Character(work=101, traffic=50, pressure=0).kind is Kind.COMPUTE


def test_the_pressure_counts_what_waits_for_its_readers() -> None:
    # While the second task ends, a (read by the third) and b wait; the weight does not count.
    problem = chain(10)
    assert most_waiting(problem) == 400
    assert character_of(problem).pressure == 400 / (2 * SPM)
    assert character_of(problem).tight


def test_a_problem_without_data_is_not_tight() -> None:
    builder = ProblemBuilder("vdla")
    builder.task("task", cycles=1)
    found = character_of(builder.build())
    assert (found.work, found.traffic, found.pressure) == (1, 0, 0)
    assert found.kind is Kind.COMPUTE
    assert not found.tight
