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
# The instances in `instances/problems` are pieces of real networks, cut into tiles, on small
# machines. Here they are solved by one-pass greedy rules, by the list scheduler (all rules, several
# weights), by CP-SAT and, where they are small enough, by a MILP. Every plan is checked, and every
# ratio is against the best bound that any of the solvers proved.
#
# | variable | meaning | without it |
# |---|---|---|
# | `SPMILP_INSTANCES` | instances whose name contains one of these words | up to 60 tasks |
# | `SPMILP_SECONDS` | time limit of each run, in seconds | 60 |
# | `SPMILP_WORKERS` | threads of each run | 2 |

# %%
import os
from pathlib import Path

import pandas as pd

import spmilp

# %matplotlib inline

FOLDER = Path("../instances/problems")
WORDS = os.environ.get("SPMILP_INSTANCES", "").split()
LIMITS = {
    "time_limit": float(os.environ.get("SPMILP_SECONDS", "60")),
    "workers": int(os.environ.get("SPMILP_WORKERS", "2")),
}
GREEDY = [
    "greedy:contiguous/layer_by_layer",
    "greedy:round_robin/layer_by_layer",
    "greedy:earliest_finish/critical_path",
]
SOLVERS = [*GREEDY, "list", "cpsat"]
MOST_TASKS, MOST_TASKS_OF_MILP = 60, 8

# %% [markdown]
# ## The instances
#
# The names say what an instance is: piece, tasks, cores and how they are connected, how tight the
# scratchpads are (`ample`, `tight`, `verytight`, `exact`), and whether computing or the DRAM binds.

# %%
problems = {file.stem: spmilp.load_problem(file) for file in sorted(FOLDER.glob("*.json"))}
problems = {
    name: problem
    for name, problem in problems.items()
    if problem.objective.first == "makespan"
    and (any(word in name for word in WORDS) if WORDS else len(problem.tasks) <= MOST_TASKS)
}


def word_of(name, words, default="none"):
    """Return which of the words a name holds."""
    return next((word for word in words if word in name.split("-")), default)


features = pd.DataFrame(
    {
        "instance": name,
        "tasks": len(problem.tasks),
        "cores": len(problem.machine.cores),
        "memory": word_of(name, ("ample", "tight", "verytight", "exact")),
        "load": word_of(name, ("compute", "balanced", "traffic")),
    }
    for name, problem in problems.items()
)
features.set_index("instance")

# %% [markdown]
# ## The runs

# %%
small = {
    name: problem for name, problem in problems.items() if len(problem.tasks) <= MOST_TASKS_OF_MILP
}
common = spmilp.compare(problems, solvers=SOLVERS, **LIMITS)
everything = common + spmilp.compare(small, solvers=["milp"], **LIMITS)
table = everything.runs
table.pivot(index="instance", columns="solver", values="ratio_to_bound").astype(float).round(3)

# %% [markdown]
# Geometric means, over the runs that have a plan (the MILP takes part in the small instances only):

# %%
everything.summary.round(3)

# %% [markdown]
# The best greedy rule is another one from instance to instance; `best greedy` takes it with
# hindsight, which no greedy compiler has.

# %%
ratios = table.pivot(index="instance", columns="solver", values="ratio_to_best").astype(float)
ratios.insert(0, "best greedy", ratios[GREEDY].min(axis=1))
ratios.agg(["mean", "max"]).round(3)

# %% [markdown]
# ## Performance profiles
#
# How large a share of the instances each solver solves within a factor of the best plan known
# (left), and which part of them is proven to be near the bound (right end of the second figure).

# %%
common.profile()

# %%
common.profile("ratio_to_bound")

# %% [markdown]
# ## Where greedy loses
#
# The mean ratio to the best plan by tightness of the scratchpads and by what binds.

# %%
joined = common.runs.merge(features[["instance", "memory", "load"]], on="instance")
joined["ratio_to_best"] = joined["ratio_to_best"].astype(float)
joined.pivot_table(
    index=["memory", "load"], columns="solver", values="ratio_to_best", aggfunc="mean"
).round(3)

# %% [markdown]
# ## Why greedy loses
#
# The instance on which the best greedy plan is furthest from the best plan. Both plans compute the
# same tiles; they differ in bytes moved, in how evenly the cores work, and in waiting.

# %%
worst = ratios["best greedy"].idxmax()
rule = ratios.loc[worst, GREEDY].idxmin()
exact = ratios.loc[worst, ["list", "cpsat"]].idxmin()
answers = {
    solver: spmilp.solve(problems[worst], solver=solver, **LIMITS)
    for solver in dict.fromkeys((rule, exact))
}


def figures_of(result):
    """Return what a plan does with its cycles and bytes."""
    return {
        "makespan": result.makespan,
        "busiest core, cycles": result.cores["busy"].max(),
        "mean utilisation": result.cores["utilisation"].mean(),
        "avoidable DRAM traffic, B": result.dram_traffic - result.summary.compulsory_dram_traffic,
        "transfers": len(result.transfers),
        "first task starts": result.tasks["start"].min(),
        "last task ends": result.tasks["end"].max(),
    }


print(worst)
pd.DataFrame({solver: figures_of(answer) for solver, answer in answers.items()}).round(3)

# %%
answers[rule].timeline()

# %%
answers[exact].timeline()

# %% [markdown]
# Over all instances: what the best greedy plan wastes, beside how much it loses.

# %%
rows = []
for name, problem in problems.items():
    greedy = spmilp.solve(problem, solver=ratios.loc[name, GREEDY].idxmin(), **LIMITS)
    rows.append(
        {
            "instance": name,
            "ratio to best": ratios.loc[name, "best greedy"],
            **figures_of(greedy),
        }
    )
losses = pd.DataFrame(rows).set_index("instance")
losses.sort_values("ratio to best", ascending=False).round(3)
