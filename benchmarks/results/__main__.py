"""Write docs/results.md from kept figures: ``python -m benchmarks.results``.

``networks.csv`` beside this file has the last run of the suite ``networks``
(as ``python -m benchmarks.bench networks --solvers solve --time-limit 120s`` does them, but with
120 s of processor time), one row for each network on a machine, ``simulated`` being the simulated
makespan over the planned one;
``instances/best_known.csv`` has the small problems, and ``benchmarks/published/rows.csv`` figures
of publications.
"""

import csv
import re
from collections.abc import Callable, Sequence
from math import exp, log
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = Path(__file__).with_name("networks.csv")
INSTANCES = ROOT / "instances" / "best_known.csv"
PUBLISHED = ROOT / "benchmarks" / "published" / "rows.csv"
PAGE = ROOT / "docs" / "results.md"

Row: TypeAlias = dict[str, str]

MACHINE = re.compile(
    r"-(edge16|mesh4x4|cell_be|ipu_mk2|xdna1|gap9|epiphany3|wormhole|stream_quad|set_8x8)"
)

SHOWN = (
    "light_squeezenet-mesh4x4",
    "light_resnet50-edge16",
    "light_vgg19-edge16-dram2",
    "mobilenetv1_025_int8-gap9",
    "ds_cnn_int8-gap9-dram0.25",
    "resnet8_int8-xdna1",
    "bert_tiny_f32-batch1-sequence64-wormhole",
    "vit_tiny_f32-edge16",
    "llama_block_f32-mesh4x4-dram0.5-spm0.5",
    "tiny_lstm_f32-mesh4x4-dram0.25",
)
"""Rows of the page: small and large networks, and the widest gap."""

SIZES = (("below 13", 0, 12), ("13 to 40", 13, 40), ("above 40", 41, 10**6))

PAGE_TEXT = """# Results

`python -m benchmarks.results` writes this page from kept figures: of networks, those of the last
run of the whole suite. Method and all rows stand in `benchmarks/notes`.

## Whole networks

`spmilp solve` with two minutes of processor time and one worker on {count} pairs of a network and
a machine. Scalings of DRAM bandwidth and scratchpads make most of them balanced or tight; a network
that only computes, or only loads, is easy. The checker accepted every plan.

- **Gap of tiles**: {gap:.1%} in the mean (worst {worst:.1%}). No plan with these tiles is
  shorter by more.
- **Gap**: {roofline:.1%} in the mean to what no tiling can beat.
- **Simulated**: the plans' command lists, run with links that are shared fairly, take
  {simulated:.3f} of the planned cycles in the mean, {late} of {count} more than 1.1.
- **Optimal or nearly so**: {near} of {count} rows are within 5 % of the bound of their tiles,
  {proven} of them proven optimal.

By machine (means are geometric):

{machines}

Some rows:

{rows}

*Cores busy* is the mean part of the makespan for which a core computes; *DRAM* is bytes over
those that no plan avoids. Wide gaps have two reasons. On many cores results travel all the time,
each with a set-up and a latency (BERT on wormhole). And where scratchpads are small, workspace of
kernels and what waits between layers leave no room to load ahead, which bounds do not see.

## Small problems

The 60 [instances](instances.md), the best plans and bounds that are known, by any solver:

{instances}

## Beside publications

The notes set {published} figures of {sources} publications beside ours, each difference with its
reason. A few of them:

{beside}
"""

BESIDE = (
    ("minimalloc", "least height of K (454 buffers), bytes"),
    ("cosma", "reduction at M_R, mean of the 2 networks with M_R below M_P"),
    ("tvm", "utilisation of multipliers, `tvm`, DRAM 8 B/cycle"),
    ("stream", "makespan of two convolutions on its quad-core"),
    ("onsram", "speed-up without limit, VGG16"),
    ("job_shops", "makespan of mk04 (90 tasks)"),
)


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(log(value) for value in values) / len(values))


def mean_gap(rows: Sequence[Row], above: str, below: str) -> float:
    """Return ``1 - 1 / ratio`` for the mean ratio of two columns."""
    return 1 - 1 / mean([float(row[above]) / float(row[below]) for row in rows])


def gap_of(row: Row) -> float:
    """Return the gap of a row's tiles."""
    return 1 - float(row["bound"]) / float(row["makespan"])


def machine_of(row: Row) -> str:
    """Return the machine in the name of a row."""
    found = MACHINE.search(row["row"])
    if found is None:
        raise ValueError(f"{row['row']}: none of the machines {MACHINE.pattern}")
    return found[1]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown: names to the left, numbers to the right."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    return "\n".join((*lines, *("| " + " | ".join(row) + " |" for row in rows)))


def machines(networks: Sequence[Row]) -> str:
    """Return the table of machines."""
    by_name: dict[str, list[Row]] = {}
    for row in networks:
        by_name.setdefault(machine_of(row), []).append(row)
    return table(
        ("machine", "rows", "gap of tiles", "gap", "simulated ÷ planned"),
        [
            (
                name,
                str(len(rows)),
                f"{mean_gap(rows, 'makespan', 'bound'):.1%}",
                f"{mean_gap(rows, 'makespan', 'roofline'):.1%}",
                f"{mean([float(row['simulated']) for row in rows]):.3f}",
            )
            for name, rows in sorted(by_name.items(), key=lambda one: -len(one[1]))
        ],
    )


def shown(networks: Sequence[Row]) -> str:
    """Return the table of some rows."""
    by_name = {row["row"]: row for row in networks}
    return table(
        ("network and machine", "tasks", "makespan", "gap of tiles", "cores busy", "DRAM"),
        [
            (
                name.removeprefix("light_"),
                f"{int(row['tasks']):,}",
                f"{int(row['makespan']):,}",
                f"{gap_of(row):.1%}",
                f"{float(row['busy']):.0%}",
                row["dram_ratio"],
            )
            for name in SHOWN
            for row in (by_name[name],)
        ],
    )


def instances(rows: Sequence[Row]) -> str:
    """Return the table of small problems."""
    found = []
    for name, least, most in SIZES:
        these = [row for row in rows if least <= int(row["tasks"]) <= most]
        gaps = sorted(1 - float(row["bound"]) / float(row["objective"]) for row in these)
        proven = sum(row["status"] == "optimal" for row in these)
        found.append((name, str(len(these)), str(proven), f"{gaps[len(gaps) // 2]:.1%}"))
    return table(("tasks", "instances", "proven optimal", "median gap"), found)


def beside(published: Sequence[Row]) -> str:
    """Return the table of some published figures."""
    by_name = {(row["source"], row["quantity"]): row for row in published}
    return table(
        ("source: quantity", "published", "here"),
        [
            (f"{name[0]}: {name[1]}", by_name[name]["published"], by_name[name]["ours"])
            for name in BESIDE
        ],
    )


def page_of(read: Callable[[Path], list[Row]] = rows_of) -> str:
    """Return the page in Markdown."""
    networks, published = read(NETWORKS), read(PUBLISHED)
    with_figure = [row for row in published if not row["published"].startswith("none")]
    gaps = [gap_of(row) for row in networks]
    return PAGE_TEXT.format(
        count=len(networks),
        gap=mean_gap(networks, "makespan", "bound"),
        worst=max(gaps),
        roofline=mean_gap(networks, "makespan", "roofline"),
        simulated=mean([float(row["simulated"]) for row in networks]),
        late=sum(float(row["simulated"]) > 1.1 for row in networks),
        near=sum(gap <= 0.05 for gap in gaps),
        proven=sum(row["bound"] == row["makespan"] for row in networks),
        machines=machines(networks),
        rows=shown(networks),
        instances=instances(read(INSTANCES)),
        published=len(with_figure),
        sources=len({row["source"] for row in with_figure}),
        beside=beside(published),
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page_of(), encoding="utf-8")
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
