"""A network with a state, and streams in which inferences leave it on the chip or in DRAM."""

from dataclasses import replace

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Stream, Transfer
from spmilp.problem.problem import Problem
from tests.oracle.small import DRAM, ProblemSketch, machine

PERIOD, BEGINS, SPM = 10, 6, 1


def with_states(problem: Problem, **states: str) -> Problem:
    """Return a problem with states: inputs, and the outputs that inferences leave in them."""
    number = {tensor.name: tensor.index for tensor in problem.tensors}
    tensors = (
        replace(
            one,
            state=number[states[one.name]] if one.name in states else None,
        )
        for one in problem.tensors
    )
    return replace(problem, tensors=tuple(tensors))


def on_chip() -> tuple[Problem, Plan]:
    """Return a task that leaves a state on the chip, and a stream of it.

    The task begins when that of the inference before has ended.
    """
    sketch = ProblemSketch(machine(128))
    sketch.buffer("s", 8, starts=DRAM).buffer("x", 8, starts=DRAM)
    sketch.buffer("s2", 8, ends=DRAM).buffer("y", 8, ends=DRAM)
    sketch.task("t", 10, reads=["s", "x"], writes=["s2", "y"])
    problem = with_states(sketch.problem(), s="s2")

    def stay(index: int, slice_: int, memory: int, offset: int, start: int, end: int, **more: int):
        instances = (more.pop("again"),) if "again" in more else ()
        return Residency(
            index=index, slice=slice_, memory=memory, offset=offset, bytes=8, start=start, end=end,
            instances=instances, **more,
        )  # fmt: skip

    residencies = (
        stay(0, 0, DRAM, 0, 0, 26),
        stay(1, 1, DRAM, 64, 0, 26),
        stay(2, 0, SPM, 8, 1, 21, again=0, filled_by_transfer=0),
        stay(3, 1, SPM, 16, 6, 21, again=24, filled_by_transfer=1),
        stay(4, 2, SPM, 0, 11, 31, again=8, filled_by_task=0),
        stay(5, 3, SPM, 32, 11, 26, again=40, filled_by_task=0),
        stay(6, 3, DRAM, 192, 21, 26, filled_by_transfer=2),
    )

    def move(index: int, slice_: int, source: int, to: int, start: int) -> Transfer:
        ends = (
            [("dram", "hub"), ("hub", "spm0")] if source < 2 else [("spm0", "hub"), ("hub", "dram")]
        )
        links = problem.machine.links
        route = tuple(
            next(one.index for one in links if (one.source, one.target) == each) for each in ends
        )
        return Transfer(
            index=index, slice=slice_, source=source, destinations=(to,), engine=0, channel=0,
            start=start, sent=start + 4, end=start + 5, route=route,
        )  # fmt: skip

    transfers = (move(0, 0, 0, 2, 1), move(1, 1, 1, 3, 6), move(2, 3, 5, 6, 21))
    placements = (Placement(task=0, core=0, start=11, end=21, reads=(2, 3), writes=(4, 5)),)
    stream = Stream(period=PERIOD, begins=BEGINS, instances=((), (128,), (), (256,)))
    measures = measure(problem, placements, residencies, transfers, stream)
    plan = Plan(
        placements=placements, residencies=residencies, transfers=transfers,
        tensors=(0, 64, 0, 192), claim=claim_of(measures, 0, "none"), solver="by hand",
        stream=stream,
    )  # fmt: skip
    return problem, plan
