"""Rule 8: outputs are where they must be at the end, and no value is lost before its last use."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case, Use
from spmilp.checker.violation import Violation


def outputs_stored(case: Case) -> Iterator[Violation]:
    """Each buffer that must end in a memory is valid there, as a whole, at the makespan."""
    end = case.makespan
    for buffer in case.problem.buffers:
        if buffer.ends_in is None:
            continue
        there = [
            holder
            for holder in case.holders(buffer.index)
            if case.plan.residencies[holder].memory == buffer.ends_in
        ]
        if not any(case.valid_from[r] <= end <= case.plan.residencies[r].end for r in there):
            last = max((case.plan.residencies[r].end for r in there), default=None)
            found = "no residency of it is there" if last is None else f"its last ends at {last}"
            memory = case.memory(buffer.ends_in)
            who = f"buffer {buffer.index} ({buffer.name})"
            message = f"{who} must be valid in {memory} at cycle {end}, but {found}"
            yield Violation("outputs_stored", (who, memory), message)


def no_value_lost(case: Case) -> Iterator[Violation]:
    """A value that is still needed is valid in some memory."""
    for use in (*case.task_uses, *case.transfer_uses):
        if case.plan.residencies[use.residency].end < use.end and case.is_lost(use):
            last = _last_valid_cycle(case, use)
            user, what = case.user(use), case.slice(use.slice)
            yield Violation(
                "no_value_lost",
                (what, user),
                f"{user} needs {what} in cycles [{use.start}, {use.end}), but its last valid "
                f"residency ended at {last} and no copy was stored",
            )


def _last_valid_cycle(case: Case, use: Use) -> str:
    ends = [
        case.plan.residencies[holder].end
        for holder in case.holders(use.slice)
        if case.valid_from[holder] < min(case.plan.residencies[holder].end, use.end)
    ]
    return f"cycle {max(ends)}" if ends else "no cycle, for it never had one,"
