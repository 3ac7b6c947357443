"""Where gaps and DRAM traffic lie: tables of what workers have found in their plans."""

from collections.abc import Iterable, Iterator

import pandas as pd

from spmilp.analysis.attribution import Attribution
from spmilp.analysis.idle import Lack
from spmilp.bench.records import Key, Record
from spmilp.bench.sections import COUNT, RATIO, SHARE, TEXT, Columns, Section, section
from spmilp.problem.objective import Quantity

KEY = ["instance", "solver", "seed"]
IDLE = {lack: f"idle_{lack}" for lack in Lack}
SHARES = ["channels", "links", "busiest_link", "dram_out", "dram_in", "memory", "fullest"]
PHASES = [*KEY, "phase", "start", "end", "part", "core_cycles", "busy", *IDLE.values(), *SHARES]
EXCESS = [*KEY, "kind", "data", "operator", "bytes", "compulsory"]

DIGITS = 6
"""Decimals of shares."""

LACKS = {
    Lack.ROOM: "room",
    Lack.DRAM: "data from DRAM",
    Lack.CORE: "data from a core",
    Lack.ORDER: "its turn",
    Lack.UNUSED: "nothing",
    Lack.DONE: "no task left",
}
"""What idle cores wait for, as headings."""

WITHOUT_IDLE = "without"
"""The gap of runs in which no core is ever idle."""

CYCLES: Columns = {
    "solver": ("solver", TEXT),
    "runs": ("runs", COUNT),
    "busy": ("busy", SHARE),
    **{lack.value: (heading, SHARE) for lack, heading in LACKS.items()},
}
GAPS: Columns = {
    "solver": ("solver", TEXT),
    "runs": ("runs", COUNT),
    "gap": ("mean gap", SHARE),
    **{lack.value: (heading, SHARE) for lack, heading in LACKS.items()},
    WITHOUT_IDLE: ("no core idle", SHARE),
}
BYTES: Columns = {
    "solver": ("solver", TEXT),
    "kind": ("kind", TEXT),
    "data": ("data", TEXT),
    "runs": ("runs", COUNT),
    "to_compulsory": ("÷ compulsory", RATIO),
    "share": ("of the excess", SHARE),
}
OF_CYCLES = (
    "Cycles of all cores, busy and by what idle ones wait for, as shares of cores × makespan; "
    "arithmetic means over the runs with a plan."
)
OF_GAPS = (
    "The gap of each run to the best bound of its problem, divided in proportion to its idle core "
    "cycles; arithmetic means over the runs, in which the parts add up to the gap. Some idle "
    "cycles are in every plan of the problem: a part is not what would be won without that wait."
)
OF_BYTES = (
    "DRAM bytes beyond the compulsory of the run's problem, divided by these; arithmetic means "
    "over all runs with a plan, `runs` of them with such bytes. What a solver moves beyond is the "
    "sum of its lines."
)


def attributed(records: Iterable[Record]) -> Iterator[tuple[Record, Attribution]]:
    """Yield the runs of whose plans it is known."""
    for record in records:
        if record.attribution is not None:
            yield record, record.attribution


def phases_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row for each phase of each plan; ``docs/benchmarks.md`` explains the columns."""
    rows = [
        {
            **dict(zip(KEY, record.key, strict=True)),
            "phase": number,
            "start": phase.start,
            "end": phase.end,
            "part": str(phase.part),
            "core_cycles": found.cores * (phase.end - phase.start),
            "busy": phase.busy,
            **{IDLE[lack]: phase.idle[lack] for lack in Lack},
            **{name: round(getattr(phase, name), DIGITS) for name in SHARES},
        }
        for record, found in attributed(records)
        for number, phase in enumerate(found.phases)
    ]
    return pd.DataFrame(rows, columns=PHASES)


def excess_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row for each run, kind, data and operator, the most bytes of a run first."""
    rows = [
        (*record.key, str(each.kind), str(each.data), each.operator, each.bytes, found.compulsory)
        for record, found in attributed(records)
        for each in found.excess
    ]
    return pd.DataFrame(rows, columns=EXCESS)


def sections_of_attribution(runs: pd.DataFrame, records: Iterable[Record]) -> Iterator[Section]:
    """Yield where idle cycles, the gap and the bytes beyond the compulsory lie, by solver.

    Parameters
    ----------
    runs
        The table of the runs, for their gaps.
    """
    found = list(attributed(records))
    if not found:
        return
    yield section("What cores do", OF_CYCLES, cycles_frame(found), CYCLES)
    gaps = gap_frame(runs, found)
    if not gaps.empty:
        yield section("Where the gap lies", OF_GAPS, gaps, GAPS)
    beyond = bytes_frame(found)
    if not beyond.empty:
        yield section("DRAM bytes beyond the compulsory", OF_BYTES, beyond, BYTES)


def cycles_frame(found: Iterable[tuple[Record, Attribution]]) -> pd.DataFrame:
    """Return for each solver the mean shares of core cycles, busy and by what idle ones lack."""
    rows = []
    for record, each in found:
        busy, idle = sum(phase.busy for phase in each.phases), each.idle()
        everything = busy + sum(idle.values())
        if everything:
            shares = {lack.value: idle[lack] / everything for lack in Lack}
            rows.append({"solver": record.solver, "busy": busy / everything} | shares)
    return _means(pd.DataFrame(rows, columns=["solver", "busy", *(lack.value for lack in Lack)]))


def gap_frame(runs: pd.DataFrame, found: Iterable[tuple[Record, Attribution]]) -> pd.DataFrame:
    """Return for each solver its mean gap, and what of it falls on which idle cycles."""
    of_makespans = runs[(runs["quantity"] == Quantity.MAKESPAN.value) & runs["gap"].notna()]
    gaps: dict[Key, float] = {
        (row["instance"], row["solver"], row["seed"]): row["gap"]
        for row in of_makespans[[*KEY, "gap"]].to_dict("records")
    }
    rows = []
    for record, each in found:
        gap, idle = gaps.get(record.key), each.idle()
        if gap is None:
            continue
        waits = sum(idle.values())
        parts = {lack.value: gap * idle[lack] / waits if waits else 0.0 for lack in Lack}
        rest = None if waits else gap
        rows.append({"solver": record.solver, "gap": gap} | parts | {WITHOUT_IDLE: rest})
    columns = ["solver", "gap", *(lack.value for lack in Lack), WITHOUT_IDLE]
    frame = pd.DataFrame(rows, columns=columns)
    if frame[WITHOUT_IDLE].notna().any():
        frame[WITHOUT_IDLE] = frame[WITHOUT_IDLE].fillna(0.0)
    return _means(frame)


def bytes_frame(found: Iterable[tuple[Record, Attribution]]) -> pd.DataFrame:
    """Return for each solver the mean excess over the compulsory bytes by kind and data."""
    rows = []
    plans: dict[str, int] = {}
    for record, each in found:
        if not each.compulsory:
            continue
        plans[record.solver] = plans.get(record.solver, 0) + 1
        rows += [
            (record.solver, str(one.kind), str(one.data), record.key, one.bytes / each.compulsory)
            for one in each.excess
        ]
    frame = pd.DataFrame(rows, columns=["solver", "kind", "data", "run", "to_compulsory"])
    table = frame.groupby(["solver", "kind", "data"], sort=False).agg(
        runs=("run", "nunique"), to_compulsory=("to_compulsory", "sum")
    )
    table = table.reset_index()
    table["to_compulsory"] /= table["solver"].map(plans).astype(float)
    table["share"] = table["to_compulsory"] / table.groupby("solver")["to_compulsory"].transform(
        "sum"
    )
    order = {solver: place for place, solver in enumerate(plans)}
    table["place"] = table["solver"].map(order)
    return table.sort_values(["place", "share"], ascending=[True, False], kind="stable")


def _means(frame: pd.DataFrame) -> pd.DataFrame:
    by_solver = frame.groupby("solver", sort=False)
    means = by_solver.mean()
    means.insert(0, "runs", by_solver.size())
    return means.reset_index()
