"""The rules ``race`` and ``task_order``: what conflicts is ordered, as in the plan."""

from collections.abc import Iterator

from spmilp.checker.races.accesses import (
    Access,
    accesses_of_task,
    accesses_of_transfer,
    boxes_touched,
)
from spmilp.checker.races.execution import Execution, Spot
from spmilp.checker.races.naming import command_name
from spmilp.checker.races.shadow import BoxShadow, ByteShadow, Cell, Touch
from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.commands.commands import Move, Run


class Conflicts:
    """Looks at tasks and transfers as they start, and says with what they are not ordered.

    It is enough to compare an access with the last write of its bytes and the reads since: if these
    are ordered as in the plan, so are all before them. Tensors that nobody writes are left out.
    """

    def __init__(self, case: Case, execution: Execution) -> None:
        self._case = case
        self._execution = execution
        self._bytes = [ByteShadow() for _ in case.machine.memories]
        self._boxes = {tensor: BoxShadow(boxes) for tensor, boxes in boxes_touched(case).items()}
        self._tasks: dict[int, Spot] = {}

    def at_start(self, spot: Spot, command: Run | Move) -> Iterator[Violation]:
        """Yield what is wrong when a task or transfer starts, and note its accesses."""
        if isinstance(command, Run):
            yield from self._task_order(command.task, spot)
            self._tasks[command.task] = spot
            accesses = accesses_of_task(self._case, command.task)
        else:
            accesses = accesses_of_transfer(self._case, command.transfer)
        for access in accesses:
            touch = self._touch(spot, command, access)
            for cell in self._cells(access):
                yield from self._with_cell(touch, cell)
            self._note(touch)

    def _touch(self, spot: Spot, command: Run | Move, access: Access) -> Touch:
        planned = (
            self._case.plan.placements[command.task]
            if isinstance(command, Run)
            else self._case.plan.transfers[command.transfer]
        )
        return Touch(command, spot, planned.start, planned.end, access)

    def _task_order(self, task: int, now: Spot) -> Iterator[Violation]:
        for earlier in self._case.problem.tasks[task].after:
            done = self._tasks.get(earlier)
            if done is None or not self._execution.precedes(done, now):
                first, second = self._case.task(earlier), self._case.task(task)
                message = f"nothing keeps {second} from starting before {first} has ended"
                yield Violation("task_order", (second, first), message)

    def _cells(self, access: Access) -> list[Cell]:
        if access.tensor is None:
            return self._bytes[access.memory].cells(access.low, access.high)
        shadow = self._boxes.get(access.tensor)
        return [] if shadow is None else shadow.cells(access.box)

    def _note(self, touch: Touch) -> None:
        access = touch.access
        if access.tensor is None:
            where = self._bytes[access.memory]
            if access.writes:
                where.renew(access.low, access.high, touch)
            else:
                for cell in where.cells(access.low, access.high):
                    cell.readers[touch.spot.list] = touch
        elif access.tensor in self._boxes:
            if access.writes:
                self._boxes[access.tensor].renew(access.box, touch)
            else:
                self._boxes[access.tensor].own(access.box).readers[touch.spot.list] = touch

    def _with_cell(self, touch: Touch, cell: Cell) -> Iterator[Violation]:
        others = [] if cell.writer is None else [cell.writer]
        if touch.access.writes:
            others += cell.readers.values()
        for other in others:
            if other.spot == touch.spot:
                continue
            if not self._execution.precedes(other.spot, touch.spot):
                yield self._violation(other, touch, "and neither waits for the other")
            elif other.end > touch.start:
                why = (
                    f"in this order, but the plan ends the first at cycle {other.end} > "
                    f"{touch.start}, the start of the second"
                )
                yield self._violation(other, touch, why)

    def _violation(self, other: Touch, touch: Touch, why: str) -> Violation:
        memory = self._case.memory(touch.access.memory)
        names = command_name(self._case, other.command), command_name(self._case, touch.command)
        first, second = (self._describe(each.access) for each in (other, touch))
        message = f"{names[0]} {first} and {names[1]} {second} of {memory}, {why}"
        return Violation("race", (*names, memory), message)

    def _describe(self, access: Access) -> str:
        verb = "writes" if access.writes else "reads"
        part = "" if access.tensor is None else "elements in "
        return f"{verb} {part}[{access.low}, {access.high})"
