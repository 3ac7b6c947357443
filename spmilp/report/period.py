"""A report's tables for a stream: one period, as each is when many inferences overlap."""

from typing import Any

from spmilp.explaining.chain import AnalysedPlan
from spmilp.explaining.streams import MOST_ROWS, uses
from spmilp.plan.plan import Stream
from spmilp.plan.turns import residencies_of_period, turns
from spmilp.units import ResidencyIdx

NONE = -1
"""Stands for no index in the tables of the page."""


def in_one_period(shown: dict[str, Any], subject: AnalysedPlan, stream: Stream) -> dict[str, Any]:
    """Return the tables of the page with a row for each turn in a period, and without prologue.

    Rows that go on over its ends come twice. What waits for what is not told: that crosses periods.
    """
    plan = subject.plan
    tasks = [(p, turn) for p in plan.placements for turn in turns(stream, p.start, p.end)]
    moves = [(t, turn) for t in plan.transfers for turn in turns(stream, t.start, t.end)]
    rows = residencies_of_period(plan)
    row_of: dict[tuple[ResidencyIdx, int], int] = {}
    for place, (each, behind) in enumerate(rows):
        row_of[each.index, behind] = place
        row_of.setdefault((each.index, NONE), place)
    activities = [(run.task, turn.behind) for run, turn in tasks]
    activities += [(len(plan.placements) + move.index, turn.behind) for move, turn in moves]
    activity_of = {activity: place for place, activity in enumerate(activities)}

    def row(residency: ResidencyIdx, behind: int) -> int:
        own = row_of.get((residency, NONE), NONE)
        return row_of.get((residency, behind), own) if residency != NONE else NONE

    def table(name: str, numbers: list[int]) -> dict[str, Any]:
        return {key: [column[n] for n in numbers] for key, column in shown[name].items()}

    found: dict[str, Any] = {
        "tasks": table("tasks", [run.task for run, _ in tasks]),
        "transfers": table("transfers", [move.index for move, _ in moves]),
        "residencies": table("residencies", [each.index for each, _ in rows]),
    }
    turns_of = {"tasks": [turn for _, turn in tasks], "transfers": [turn for _, turn in moves]}
    for name, some in turns_of.items():
        mine = found[name] | {key: [getattr(t, key) for t in some] for key in ("start", "end")}
        for key in mine.keys() & {"reads", "writes", "ends"}:
            ends = zip(mine[key], some, strict=True)
            mine[key] = [[row(one, turn.behind) for one in every] for every, turn in ends]
        for key in mine.keys() & {"scratch", "source"}:
            ends = zip(mine[key], some, strict=True)
            mine[key] = [row(one, turn.behind) for one, turn in ends]
        found[name] = mine
    found["transfers"]["sends"] = [
        [cycle - move.start + turn.start for cycle in subject.sends[move.index]]
        for move, turn in moves
    ]
    lying = found["residencies"]
    lying |= {key: [getattr(each, key) for each, _ in rows] for key in ("start", "end", "offset")}
    behind_of = [behind for _, behind in rows]
    lying["below"] = [row(o, b) for o, b in zip(lying["below"], behind_of, strict=True)]
    fillers = zip(lying["filler"], behind_of, strict=True)
    lying["filler"] = [activity_of.get(filler, NONE) for filler in fillers]
    busy = uses(subject.problem, plan, stream)[:MOST_ROWS]
    found |= {
        "makespan": stream.period,
        "behind": [turn.behind for some in turns_of.values() for turn in some],
        "causes": shown["causes"] | {"first": [0] * (len(activity_of) + 1)},
        "bindings": [{"cycles": use.cycles, "text": use.said()} for use in busy],
        "core_times": [{**core, "idle": []} for core in shown["core_times"]],
        "excess": [],
    }
    return shown | found
