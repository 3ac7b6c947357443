"""Sections of a summary: tables of text for the terminal and for ``summary.md``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from spmilp.bench.suite import GREEDY
from spmilp.bench.summary import (
    BEST_GREEDY,
    baseline_frame,
    groups,
    instance_frame,
    summary_frame,
    wide_gaps,
    with_best_greedy,
)

TEXT, COUNT, RATIO, SHARE, SECONDS = "", ",.0f", ".3f", ".1%", ".2f"
"""Formats of the columns of a table."""

WIDE = 0.2
"""Gaps above this are listed."""

MOST_ENDS = 40
"""Runs without a plan that are listed; the others are counted."""

AGAINST = (
    "Geometric mean of the objective of the solver at the top over that of the solver on the left, "
    "where both have a plan: above 1, the one on the left is better. "
    f"`{BEST_GREEDY}` is the best one-pass rule of each row."
)

Columns = Mapping[str, tuple[str, str]]

SUMMARY: Columns = {
    "solver": ("solver", TEXT),
    "runs": ("runs", COUNT),
    "plans": ("plans", COUNT),
    "proven": ("proven", COUNT),
    "ratio_to_bound": ("× bound", RATIO),
    "mean_gap": ("gap", SHARE),
    "worst_gap": ("worst gap", SHARE),
    "mean_roofline_gap": ("to roofline", SHARE),
    "ratio_to_peer": ("× peer", RATIO),
    "seconds_to_first": ("first plan, s", SECONDS),
    "soon": ("in 5 s", COUNT),
    "primal_integral": ("primal integral, s", SECONDS),
    "peak_mib": ("peak MiB", COUNT),
}
INSTANCES: Columns = {
    "instance": ("instance", TEXT),
    "class": ("class", TEXT),
    "tasks": ("tasks", COUNT),
    "bound": ("bound", COUNT),
    "gap": ("gap", SHARE),
    "roofline_gap": ("to roofline", SHARE),
}
FIRST, LAST = ("instance", "class", "tasks", "bound"), ("gap", "roofline_gap")
WIDEST: Columns = {
    "instance": ("instance", TEXT),
    "class": ("class", TEXT),
    "solver": ("solver", TEXT),
    "objective": ("objective", COUNT),
    "bound": ("bound", COUNT),
    "bound_source": ("bound by", TEXT),
    "gap": ("gap", SHARE),
    "busy": ("cores busy", SHARE),
    "dram_ratio": ("DRAM ÷ compulsory", RATIO),
    "roofline_gap": ("gap to roofline", SHARE),
}
PEERS: Columns = {
    "instance": ("instance", TEXT),
    "solver": ("solver", TEXT),
    "objective": ("objective", COUNT),
    "bound": ("bound", COUNT),
    "peer": ("peer", TEXT),
    "peer_objective": ("the peer's", COUNT),
    "ratio_to_peer": ("ratio", RATIO),
}
ENDS: Columns = {
    "instance": ("instance", TEXT),
    "solver": ("solver", TEXT),
    "status": ("status", TEXT),
    "reason": ("reason", TEXT),
}


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a title and a sentence on what it shows.

    Parameters
    ----------
    numbers
        Positions of the columns that are set flush right.
    """

    title: str
    note: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int]


def sections_of(frame: pd.DataFrame) -> Iterator[Section]:
    """Yield the tables of a :func:`~spmilp.bench.tables.runs_frame`, the most important first."""
    if frame.empty:
        return
    runs = with_best_greedy(frame)
    for name, part in groups(runs):
        rows = part["instance"].nunique()
        shown = part if name == "all rows" else part[~part["solver"].str.startswith(GREEDY)]
        yield section(f"{_capital(name)} ({rows})", "", summary_frame(shown), SUMMARY)
        yield from _baselines(name, part)
    yield _by_instance(runs)
    yield from _lists(frame)


def section(title: str, note: str, frame: pd.DataFrame, columns: Columns) -> Section:
    """Return a table of some columns under their headings; those that are empty are left out."""
    kept = {
        name: form
        for name, form in columns.items()
        if form[1] == TEXT or frame.empty or frame[name].notna().any()
    }
    rows = tuple(
        tuple(_cell(value, form) for value, (_, form) in zip(row, kept.values(), strict=True))
        for row in frame[list(kept)].itertuples(index=False)
    )
    numbers = frozenset(at for at, (_, form) in enumerate(kept.values()) if form != TEXT)
    return Section(title, note, tuple(heading for heading, _ in kept.values()), rows, numbers)


def markdown(sections: Sequence[Section], heading: str, settings: Sequence[str]) -> str:
    """Return sections as a Markdown page.

    Parameters
    ----------
    settings
        Sentences below the heading.
    """
    lines = [f"# {heading}", "", *settings]
    for each in sections:
        lines += ["", f"## {each.title}", ""]
        if each.note:
            lines += [each.note, ""]
        lines.append(_line(each.headings))
        lines.append(
            _line(["--:" if at in each.numbers else "---" for at in range(len(each.headings))])
        )
        lines += [_line(row) for row in each.rows]
    return "\n".join(lines) + "\n"


def settings_of(frame: pd.DataFrame) -> list[str]:
    """Return the settings of the runs, and a warning where versions differ."""
    if frame.empty:
        return ["Nothing has been run yet."]
    limits = sorted({_cell(limit, ",g") for limit in frame["time_limit"]})
    workers = sorted({str(count) for count in frame["workers"]})
    versions = sorted(set(frame["version"]))
    lines = [
        f"{len(frame)} runs on {frame['instance'].nunique()} instances; limit "
        f"{' or '.join(limits)} s; workers {' or '.join(workers)}; version {', '.join(versions)}."
    ]
    if len(versions) > 1:
        lines.append("**The runs are of different versions; their times and plans may differ.**")
    return lines


def _baselines(name: str, part: pd.DataFrame) -> Iterator[Section]:
    """Compare the solvers that are no single one-pass rule, if there are two."""
    named = part[~part["solver"].str.startswith(GREEDY)]
    ratios = baseline_frame(named).reset_index()
    if len(ratios) < 2:
        return
    columns = {str(column): (f"{column} ÷", RATIO) for column in ratios.columns[1:]}
    title = f"Against each other, {name}"
    note = AGAINST if name == "all rows" else ""
    yield section(title, note, ratios, {"solver": ("solver", TEXT), **columns})


def _by_instance(runs: pd.DataFrame) -> Section:
    table = instance_frame(runs[~runs["solver"].str.startswith(GREEDY)])
    solvers = {str(name): (str(name), COUNT) for name in table.columns if name not in INSTANCES}
    first, last = ({name: INSTANCES[name] for name in names} for names in (FIRST, LAST))
    note = (
        "Objectives of each solver; the gaps are of the best run on the row's own problem, or of "
        "the best run where each has tiles of its own."
    )
    return section("By instance", note, table, {**first, **solvers, **last})


def _lists(frame: pd.DataFrame) -> Iterator[Section]:
    """Yield lists of single runs: against peers, with wide gaps, without a plan."""
    peers = frame[frame["peer_objective"].notna() & frame["objective"].notna()]
    if not peers.empty:
        note = "The ratio is ours over the peer's: below 1, ours is better."
        yield section("Beside other tools", note, peers, PEERS)
    wide = wide_gaps(frame, WIDE)
    if not wide.empty:
        note = f"The best run of each instance whose gap is above {WIDE:.0%}."
        yield section("Wide gaps", note, wide, WIDEST)
    without = frame[frame["objective"].isna()]
    if not without.empty:
        more = len(without) - MOST_ENDS
        note = f"The first {MOST_ENDS}; {more} more are in runs.csv." if more > 0 else ""
        yield section("Runs without a plan", note, without.head(MOST_ENDS), ENDS)


def _cell(value: object, form: str) -> str:
    if value is None or value is pd.NA or value != value:
        return "–"
    return format(value, form)


SAFE = str.maketrans({"|": "\\|", "\n": " ", "<": "&lt;", "&": "&amp;"})
"""Characters of names that would be markup in a Markdown table."""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.translate(SAFE) for cell in cells) + " |"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
