"""The rule that comes before all others: every reference leads somewhere, every list is complete.

The other rules rely on it; they are not asked when it is broken.
"""

from collections.abc import Iterator, Sequence

from spmilp.checker.rules.case import Finding
from spmilp.plan.plan import MOST_INSTANCES, Placement, Plan, Residency, Stream, Transfer
from spmilp.problem.problem import Problem, Task


def structure(problem: Problem, plan: Plan) -> Iterator[Finding]:
    """Indices are in range, tables in order and complete, intervals not empty."""
    for who, what in _defects(problem, plan):
        yield (who,), f"{who}: {what}"


def _defects(problem: Problem, plan: Plan) -> Iterator[tuple[str, str]]:
    yield from _tables(problem, plan)
    for position, placement in enumerate(plan.placements):
        who = f"placement {position}"
        if placement.task != position:
            yield who, f"is of task {placement.task}, expected task {position}"
        elif position < len(problem.tasks):
            yield from _placement(who, problem, plan, problem.tasks[position], placement)
    for position, residency in enumerate(plan.residencies):
        yield from _residency(f"residency {position}", position, problem, plan, residency)
    for position, transfer in enumerate(plan.transfers):
        yield from _transfer(f"transfer {position}", position, problem, plan, transfer)


def _tables(problem: Problem, plan: Plan) -> Iterator[tuple[str, str]]:
    if len(plan.placements) != len(problem.tasks):
        yield "plan", f"{len(plan.placements)} placements for {len(problem.tasks)} tasks"
    if len(plan.tensors) != len(problem.tensors):
        yield "plan", f"{len(plan.tensors)} tensor addresses for {len(problem.tensors)} tensors"
    if plan.stream is not None:
        yield from _stream(plan, plan.stream)
    for index, address in enumerate(plan.tensors):
        if address < 0:
            yield f"tensor {index}", f"address {address} < 0"


def _stream(plan: Plan, stream: Stream) -> Iterator[tuple[str, str]]:
    if stream.period < 1:
        yield "stream", f"period {stream.period} < 1 cycle"
    if stream.begins < 0:
        yield "stream", f"begins at cycle {stream.begins} < 0"
    if stream.instances and len(stream.instances) != len(plan.tensors):
        yield (
            "stream",
            f"instances of {len(stream.instances)} tensors, expected {len(plan.tensors)}",
        )
    for index, more in enumerate(stream.instances):
        yield from _instances(f"tensor {index}", more)


def _instances(who: str, more: Sequence[int]) -> Iterator[tuple[str, str]]:
    if len(more) >= MOST_INSTANCES:
        yield who, f"{1 + len(more)} instances, expected {MOST_INSTANCES} at most"
    for address in more:
        if address < 0:
            yield who, f"an instance at {address} B < 0 B"


def _placement(
    who: str, problem: Problem, plan: Plan, task: Task, placement: Placement
) -> Iterator[tuple[str, str]]:
    yield from _index(who, "core", placement.core, problem.machine.cores)
    yield from _interval(who, placement.start, placement.end)
    for what, given, wanted in (
        ("reads", placement.reads, task.reads),
        ("writes", placement.writes, task.writes),
    ):
        if len(given) != len(wanted):
            yield who, f"{len(given)} residencies for {len(wanted)} {what} of task {task.name}"
        for residency in given:
            yield from _index(who, "residency", residency, plan.residencies)
    if placement.scratch is not None:
        yield from _index(who, "residency", placement.scratch, plan.residencies)


def _residency(
    who: str, position: int, problem: Problem, plan: Plan, residency: Residency
) -> Iterator[tuple[str, str]]:
    if residency.index != position:
        yield who, f"has index {residency.index}, expected {position}"
    if residency.slice is not None:
        yield from _index(who, "slice", residency.slice, problem.slices)
    yield from _index(who, "memory", residency.memory, problem.machine.memories)
    yield from _interval(who, residency.start, residency.end)
    if residency.offset < 0:
        yield who, f"offset {residency.offset} B < 0 B"
    yield from _instances(who, residency.instances)
    if residency.instances and plan.stream is None:
        yield who, f"{1 + len(residency.instances)} instances, expected 1 without a stream"
    if residency.bytes <= 0:
        yield who, f"size {residency.bytes} B, expected > 0 B"
    if residency.filled_by_task is not None:
        yield from _index(who, "task", residency.filled_by_task, plan.placements)
    if residency.filled_by_transfer is not None:
        yield from _index(who, "transfer", residency.filled_by_transfer, plan.transfers)
    if residency.filled_by_task is not None and residency.filled_by_transfer is not None:
        yield (
            who,
            f"filled by task {residency.filled_by_task} and by transfer "
            f"{residency.filled_by_transfer}, expected one at most",
        )


def _transfer(
    who: str, position: int, problem: Problem, plan: Plan, transfer: Transfer
) -> Iterator[tuple[str, str]]:
    if transfer.index != position:
        yield who, f"has index {transfer.index}, expected {position}"
    yield from _index(who, "slice", transfer.slice, problem.slices)
    yield from _index(who, "residency", transfer.source, plan.residencies)
    if not transfer.destinations:
        yield who, "has 0 destinations, expected 1 or more"
    for residency in transfer.destinations:
        yield from _index(who, "residency", residency, plan.residencies)
    yield from _index(who, "engine", transfer.engine, problem.machine.engines)
    for link in transfer.route:
        yield from _index(who, "link", link, problem.machine.links)
    yield from _interval(who, transfer.start, transfer.sent)
    if transfer.sent > transfer.end:
        yield who, f"has arrived at cycle {transfer.end} < {transfer.sent}, when all is sent"


def _index(who: str, kind: str, index: int, owner: Sequence[object]) -> Iterator[tuple[str, str]]:
    if not 0 <= index < len(owner):
        yield who, f"refers to {kind} {index}, but there are {len(owner)}"


def _interval(who: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    if not 0 <= start < end:
        yield who, f"cycles [{start}, {end}) are empty or negative"
