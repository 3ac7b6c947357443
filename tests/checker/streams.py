"""Streams made of plans for one inference: weights in the prologue, and any period."""

from dataclasses import replace
from math import ceil
from random import Random

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.memory import home_of
from spmilp.plan.plan import Plan, Residency, Stream
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, align_up


def as_stream(problem: Problem, plan: Plan, period: int, random: Random) -> Plan:
    """Return a stream of a plan with a period that may be too short, some weights permanent.

    Instances lie where bytes are free at all times, or where the first one does.
    """
    buffers, slices = problem.buffers, problem.slices
    loads = [
        move
        for move in plan.transfers
        if buffers[slices[move.slice].buffer].is_constant
        and home_of(problem, plan.residencies[move.source]) is not None
        and random.random() < 0.6
    ]
    start, begins = {}, 1
    for move in loads:
        start[move.index] = begins
        begins += move.end - move.start
    last = begins + plan.claim.makespan
    top: dict[int, Bytes] = {}
    for one in plan.residencies:
        top[one.memory] = max(top.get(one.memory, 0), one.offset + one.bytes)
    for tensor, address in zip(problem.tensors, plan.tensors, strict=True):
        top[tensor.memory] = max(top.get(tensor.memory, 0), address + tensor.bytes)

    def above(memory: int, size: Bytes) -> Bytes:
        alignment = problem.machine.memories[memory].alignment
        address = align_up(top.get(memory, 0), max(64, alignment))
        top[memory] = address + size
        return address

    def moved(one: Residency) -> Residency:
        is_weight = one.slice is not None and buffers[slices[one.slice].buffer].is_constant
        if home_of(problem, one) is not None and one.start == 0:
            return replace(one, end=last if is_weight else one.end + begins)
        if one.filled_by_transfer in start:
            return replace(one, start=start[one.filled_by_transfer], end=last)
        many = min(4, ceil((one.end - one.start) / period))
        many = (
            1 if home_of(problem, one) is not None else many + (random.random() < 0.05) * (many < 4)
        )
        more = tuple(
            above(one.memory, one.bytes) if random.random() < 0.8 else one.offset
            for _ in range(many - 1)
        )
        return replace(one, start=one.start + begins, end=one.end + begins, instances=more)

    residencies = tuple(map(moved, plan.residencies))
    placements = tuple(
        replace(one, start=one.start + begins, end=one.end + begins) for one in plan.placements
    )
    transfers = tuple(
        replace(one, start=at, sent=one.sent - one.start + at, end=one.end - one.start + at)
        for one in plan.transfers
        for at in [start.get(one.index, one.start + begins)]
    )
    instances = []
    for tensor in problem.tensors:
        placed = [one for one in buffers if one.place and one.place.tensor == tensor.index]
        many = 1 if placed[0].is_constant else 2 + ceil(plan.claim.makespan / period)
        many -= random.random() < 0.05 and many > 1
        instances.append(tuple(above(tensor.memory, tensor.bytes) for _ in range(min(4, many) - 1)))
    stream = Stream(period=period, begins=begins, instances=tuple(instances))
    measures = measure(problem, placements, residencies, transfers, stream)
    return replace(
        plan,
        placements=placements,
        residencies=residencies,
        transfers=transfers,
        stream=stream,
        claim=claim_of(measures, 0, "none"),
    )
