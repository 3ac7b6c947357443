# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # ILP against greedy rules
#
# What does exact optimisation buy, and where? First on pieces of real networks
# (`instances/problems`: cut into tiles, on small machines), then on whole networks. The same
# problem is solved by
#
# - 30 one-pass **greedy rules**, each a rule for cores with a rule for the order; `best greedy`
#   takes the best of them on each instance with hindsight, which no greedy compiler has;
# - the **policies** of published systems ([what each takes over](../docs/policies.md));
# - `list`, the list scheduler with all its rules;
# - two exact programs: `milp` (a MILP through PuLP, solved by HiGHS) and `cpsat` (OR-Tools CP-SAT);
# - `auto`, the portfolio that ends in exact programs where these are small enough.
#
# Every plan is checked by the independent checker. A ratio to the bound is to the best bound that
# any of the solvers has proven.
#
# | variable | meaning | without it |
# |---|---|---|
# | `SPMILP_INSTANCES` | instances whose name contains one of these words | up to 80 tasks |
# | `SPMILP_NETWORKS` | how many of the whole networks | all |
# | `SPMILP_SECONDS` | time limit of each run, in seconds | 60 |
# | `SPMILP_WORKERS` | threads of each run | 1 |
#
# The outputs below were made with `SPMILP_SECONDS=4`, those of whole networks with 2 and
# `SPMILP_NETWORKS=1`; with more seconds the exact programs come further
# ([instances](../docs/instances.md)).

# %%
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import display
from scipy.stats import binomtest

import spmilp
from spmilp.registry import list_solvers, solver_names

# %matplotlib inline
pd.set_option("display.max_colwidth", None)

FOLDER = Path("../instances/problems")
WORDS = os.environ.get("SPMILP_INSTANCES", "").split()
LIMITS = {
    "time_limit": float(os.environ.get("SPMILP_SECONDS", "60")),
    "workers": int(os.environ.get("SPMILP_WORKERS", "1")),
}
MOST_TASKS = 80

GREEDY = [name for name in solver_names() if name.startswith("greedy:")]
POLICIES = [name for name, each in list_solvers().items() if each.is_policy]
OWN = ["list", "milp", "cpsat", "auto"]
SHOWN = ["best greedy", *POLICIES, *OWN]

# %% [markdown]
# ## The instances
#
# The names say what an instance is: piece, tasks, cores and how they are connected, how tight the
# scratchpads are (`ample`, `tight`, `verytight`, `exact`), and whether computing or the DRAM
# binds.

# %%
problems = {file.stem: spmilp.load_problem(file) for file in sorted(FOLDER.glob("*.json"))}
problems = {
    name: problem
    for name, problem in problems.items()
    if problem.objective.first == "makespan"
    and (any(word in name for word in WORDS) if WORDS else len(problem.tasks) <= MOST_TASKS)
}
features = pd.DataFrame(
    {"tasks": len(problem.tasks), "cores": len(problem.machine.cores)}
    for problem in problems.values()
).set_index(pd.Index(problems, name="instance"))
names = features.index.to_series()
features["memory"] = names.str.extract("-(ample|tight|verytight|exact)", expand=False)
features["load"] = names.str.extract("-(compute|balanced|traffic)", expand=False)
features.fillna("not named").groupby(["memory", "load"])["tasks"].agg(["count", "min", "max"])

# %% [markdown]
# ## The runs
#
# Geometric means are over the runs with a plan; `plans` says how many these are, for policies
# refuse what their publication does not have.

# %%
runs = spmilp.compare(problems, solvers=[*GREEDY, *POLICIES, *OWN], **LIMITS)


def with_best_greedy(found):
    """Return the runs, and the best greedy run of each instance as those of one more solver."""
    greedy = [run for run in found.all_runs if run.solver in GREEDY and run.objective is not None]
    greedy.sort(key=lambda run: run.objective, reverse=True)
    best = {run.instance: replace(run, solver="best greedy") for run in greedy}
    return replace(found, all_runs=(*found.all_runs, *best.values()))


runs = with_best_greedy(runs)
assert runs.is_sound, runs.defects
summary = runs.summary.set_index("solver")
summary.loc[SHOWN].round(3)

# %% [markdown]
# What was refused, and the first reason:

# %%
refused = runs.runs[runs.runs["objective"].isna()].groupby("solver")["reason"]
display(refused.agg(["count", "first"]))
SHOWN = [name for name in SHOWN if summary.loc[name, "plans"]]

# %% [markdown]
# The greedy rules one by one, best first. None of them is good everywhere: compare the worst
# ratios with that of `best greedy` above.

# %%
one_by_one = ["plans", "ratio_to_best", "worst_ratio_to_best", "median_gap"]
summary.loc[GREEDY, one_by_one].sort_values("ratio_to_best").round(3)

# %% [markdown]
# ## Performance profiles
#
# The share of the instances on which a solver's plan is within a factor of the best plan known:
# at the left edge, how often it is the best; where a line ends below 1, the rest has no plan from
# it.


# %%
def draw_profile(frame, column):
    ratios = frame.pivot(index=["instance", "seed"], columns="solver", values=column)
    ratios = ratios[SHOWN].astype(float).fillna(np.inf).to_numpy()
    factors = np.unique(np.append(ratios[np.isfinite(ratios)], 1.0))
    shares = [(ratios <= factor).mean(axis=0) for factor in factors]
    axes = pd.DataFrame(shares, index=factors, columns=SHOWN).plot(
        drawstyle="steps-post", logx=True, colormap="tab20", figsize=(8, 4), ylim=(0, 1.02)
    )
    axes.set(xlabel=column.replace("_", " "), ylabel="share of runs")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return axes.figure


draw_profile(runs.runs, "ratio_to_best")

# %% [markdown]
# The same against the bound: at the left edge is what is proven to be optimal.

# %%
draw_profile(runs.runs, "ratio_to_bound")

# %% [markdown]
# ## Wins, ties and losses
#
# How often `cpsat`, an exact program alone, is better than the others; then `auto`. The p-value
# is the sign test's: how likely so lopsided a count is if either were as likely to win. `ratio`
# is the other's objective over this one's.


# %%
def sign_test(frame, reference):
    values = frame.pivot(index=["instance", "seed"], columns="solver", values="objective")
    values = values.astype(float)
    own, rows = values[reference], {}
    for solver in values.columns.drop(reference):
        # No plan loses to any plan.
        change = (values[solver].fillna(np.inf) - own.fillna(np.inf)).fillna(0)
        wins, losses = int((change > 0).sum()), int((change < 0).sum())
        rows[solver] = {
            "wins": wins,
            "ties": len(change) - wins - losses,
            "losses": losses,
            "p_value": binomtest(wins, wins + losses).pvalue if wins + losses else 1.0,
            "ratio": np.exp(np.log(values[solver] / own).mean()),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("solver")


others = [name for name in SHOWN if name != "cpsat"]
sign_test(runs.runs, "cpsat").loc[others].round(4)

# %%
others = [name for name in SHOWN if name != "auto"]
sign_test(runs.runs, "auto").loc[others].round(4)

# %% [markdown]
# ## Where greedy loses
#
# The mean ratio to the best plan, by tightness of the scratchpads and by what binds.

# %%
table = runs.runs.astype({"ratio_to_best": float}).join(features[["memory", "load"]], on="instance")
table[table["solver"].isin(["best greedy", *OWN])].pivot_table(
    index=["memory", "load"], columns="solver", values="ratio_to_best", aggfunc="mean"
).round(3)

# %% [markdown]
# ## Why greedy loses
#
# All plans of an instance compute the same tiles. They differ in the bytes that they move to and
# from DRAM, over those that no plan avoids, and in what cores wait for. The instances with the
# largest losses:

# %%
compared = table[table["solver"].isin(["best greedy", "auto"])].pivot(
    index="instance", columns="solver", values=["objective", "dram_ratio", "transfers"]
)
compared = compared.dropna().astype(float)
compared.columns = [f"{column}, {solver}" for column, solver in compared.columns]
compared["loss"] = compared["objective, best greedy"] / compared["objective, auto"]
compared.sort_values("loss", ascending=False).head(10).round(2)

# %% [markdown]
# What cores wait for in the best greedy plan and in that of `auto`, as shares of all cycles of all
# cores, on the twelve instances where greedy loses most.

# %%
first = runs.runs.dropna(subset="objective").sort_values("objective", kind="stable")
rules = first[first["solver"].isin(GREEDY)].groupby("instance")["solver"].first()
waits = []
for name in compared.sort_values("loss").index[-12:]:
    for solver in (rules[name], "auto"):
        result = spmilp.solve(problems[name], solver=solver, **LIMITS)
        idle = pd.DataFrame([core["idle"] for core in result.explain().data["cores"]]).sum()
        named = {"solver": "auto" if solver == "auto" else "best greedy"}
        waits.append(named | dict(idle / len(result.cores) / result.makespan))
pd.DataFrame(waits).groupby("solver").mean().T.round(3)

# %% [markdown]
# The instance with the largest loss, both plans on one axis of cycles, with their critical
# chains:

# %%
worst = compared["loss"].idxmax()
greedy, exact = (
    spmilp.solve(problems[worst], solver=name, **LIMITS) for name in (rules[worst], "auto")
)
print(worst, rules[worst], sep="\n")
greedy.timeline(beside=[exact], chain=True)

# %% [markdown]
# What binds each of them:

# %%
print(greedy.explain())

# %%
print(exact.explain())

# %% [markdown]
# ## Whole networks
#
# Here nothing proves an optimum, and the exact programs decide about windows of the plan inside
# `auto`. All solvers get the tiles of the first estimate, so that they have the same problem.

# %%
NETWORKS = {
    "DS-CNN, gap9": ("ds_cnn_int8", "gap9", {}),
    "ResNet-8, 32 KiB, mesh4x4": ("resnet8_int8", "mesh4x4", {"spm": "32KiB", "dram_rate": 8}),
    "ResNet-8, gap9": ("resnet8_int8", "gap9", {"dram_rate": "1/4"}),
    "MobileNetV1, xdna1": ("mobilenetv1_025_int8", "xdna1", {}),
    "GPT-2 block, mesh4x4": ("gpt2_block_f32", "mesh4x4", {"spm": "256KiB"}),
    "LSTM, mesh4x4": ("tiny_lstm_f32", "mesh4x4", {"dram_rate": 8}),
    "ResNet-18, edge16": ("resnet18_f32", "edge16", {}),
    "MobileNetV2, mesh4x4": ("mobilenetv2_f32", "mesh4x4", {"spm": "256KiB", "dram_rate": 8}),
}
chosen = list(NETWORKS.items())[: int(os.environ.get("SPMILP_NETWORKS", len(NETWORKS)))]
networks = spmilp.compare((), solvers=["auto"])
for name, (model, machine, changes) in chosen:
    networks += spmilp.compare(
        {name: f"../models/{model}.onnx"},
        spmilp.load_machine(machine).replace(**changes),
        solvers=[*GREEDY, *POLICIES, "list", "auto"],
        **LIMITS,
    )
networks = with_best_greedy(networks)
assert networks.is_sound, networks.defects
whole = networks.runs
whole[~whole["solver"].isin(GREEDY)].pivot(
    index="instance", columns="solver", values="ratio_to_bound"
).astype(float).round(2)

# %%
sign_test(networks.runs, "auto").drop(GREEDY).round(4)

# %% [markdown]
# `spmilp.solve` also chooses the tiles, which is worth more than all that was compared here
# ([tiles](../benchmarks/notes/tiles.md)); `benchmarks/notes/benchmarks.md` has its figures.
