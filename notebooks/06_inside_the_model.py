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
# # Inside the model
#
# What does an ILP for scratchpad memories look like? Here is one, built row by row with PuLP for
# three tasks: when each task runs, when each transfer runs, and at which byte each buffer lies.
# Then its relaxation, and why that is weak; then the model of the package, which decides more;
# then a search.
#
# | variable | meaning | without it |
# |---|---|---|
# | `SPMILP_SECONDS` | time limit of each solve, in seconds | 60 |

# %%
import os
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import pulp
from IPython.display import display

import spmilp
from spmilp.solvers.exact.milp.solver import write_model

# %matplotlib inline

LIMIT = float(os.environ.get("SPMILP_SECONDS", "60"))

# %% [markdown]
# ## The problem
#
# One core with a scratchpad of 512 bytes and one DMA channel that moves a byte in each cycle.
# Three tasks, a residual block in small: *a* and *b* follow each other, with a weight each, and
# *c* adds the input to what comes out.

# %%
machine_file = Path(mkdtemp()) / "tiny.yaml"
machine_file.write_text(
    """\
name: tiny
description: One core, one scratchpad, one DMA channel.
topology: {type: mesh, columns: 1, rows: 1, rate_bytes_per_cycle: 1, latency_cycles: 0}
core_kinds:
  core: {arrays: [{dtype: int8, K: 1}], lanes: {int8: 1}, launch_cycles: 0}
scratchpads:
  - cores: {core: 1}
    size_bytes: 512
    alignment_bytes: 1
    dma: [{channels: 1, setup_cycles: 0, rate_bytes_per_cycle: 1, dimensions: 3}]
dram:
  - {sites: [r_0_0], rate_bytes_per_cycle: 1, latency_cycles: 0, alignment_bytes: 1}
provenance: [{fields: ["*"], source: "Made up for this notebook.", verified: false}]
"""
)
machine = spmilp.load_machine(machine_file)


def residual_block(machine):
    """Return the problem on that machine."""
    builder = spmilp.ProblemBuilder(machine, name="residual block")
    x = builder.input("x", 96)
    w_a, w_b = builder.weight("w_a", 64), builder.weight("w_b", 160)
    y_a = builder.task("a", reads=[x, w_a], writes=("y_a", 80, "int8"), cycles=120)
    y_b = builder.task("b", reads=[y_a, w_b], writes=("y_b", 96, "int8"), cycles=150)
    y_c = builder.task("c", reads=[y_b, x], writes=("y_c", 96, "int8"), cycles=90)
    builder.output(y_c)
    return builder.build()


problem = residual_block(machine)

# %% [markdown]
# ## Sets and data
#
# Tasks $T$ with cycles $p_t$; buffers $B$ with bytes $s_v$; those that are loaded, $I$, and those
# that are stored, $O$. A transfer of $v$ takes $s_v$ cycles, for channel and DRAM move a byte per
# cycle. $C$ bytes of SPM.

# %%
p = {"a": 120, "b": 150, "c": 90}
s = {"x": 96, "w_a": 64, "w_b": 160, "y_a": 80, "y_b": 96, "y_c": 96}
reads = {"a": ["x", "w_a"], "b": ["y_a", "w_b"], "c": ["y_b", "x"]}
writes = {"a": "y_a", "b": "y_b", "c": "y_c"}
loaded, stored = ["x", "w_a", "w_b"], ["y_c"]
C = 512
H = sum(p.values()) + sum(s[v] for v in [*loaded, *stored])  # everything in turn: no plan is longer
print(H)

# %% [markdown]
# ## Variables
#
# Start $S_t$ of each task, $L_v$ of each load, $W_v$ of each store; each buffer is in the
# scratchpad during $[A_v, Z_v)$ at bytes $[o_v, o_v + s_v)$; the makespan $M$ is what is
# minimised.

# %%
model = pulp.LpProblem("scratchpad", pulp.LpMinimize)
M = pulp.LpVariable("M", 0, H)
S = {t: pulp.LpVariable(f"S_{t}", 0, H) for t in p}
L = {v: pulp.LpVariable(f"L_{v}", 0, H) for v in loaded}
W = {v: pulp.LpVariable(f"W_{v}", 0, H) for v in stored}
A = {v: pulp.LpVariable(f"A_{v}", 0, H) for v in s}
Z = {v: pulp.LpVariable(f"Z_{v}", 0, H) for v in s}
o = {v: pulp.LpVariable(f"o_{v}", 0, C - s[v]) for v in s}
model += M

# %% [markdown]
# ## Rows
#
# **A task begins when its operands are there, and they stay until it has ended.** $L_v + s_v \le
# S_t$ for what is loaded, $S_u + p_u \le S_t$ for what task $u$ writes; $Z_v \ge S_t + p_t$.

# %%
for t, operands in reads.items():
    for v in operands:
        model += Z[v] >= S[t] + p[t]
        if v in loaded:
            model += S[t] >= L[v] + s[v]
        else:
            writer = next(u for u, written in writes.items() if written == v)
            model += S[t] >= S[writer] + p[writer]

# %% [markdown]
# **A buffer takes its bytes from the start of its load, or of the task that writes it**, $A_v =
# L_v$ or $A_v = S_t$; an output stays until it is stored, $W_v \ge S_t + p_t$, $Z_v \ge W_v +
# s_v$. Everything ends by $M$.

# %%
for v in loaded:
    model += A[v] == L[v]
for t, v in writes.items():
    model += A[v] == S[t]
    model += S[t] + p[t] <= M
    if v in stored:
        model += W[v] >= S[t] + p[t]
        model += Z[v] >= W[v] + s[v]
        model += W[v] + s[v] <= M
continuous_rows = len(model.constraints)
print(continuous_rows)

# %% [markdown]
# **One at a time.** The core runs one task, the channel one transfer. For each two of them a
# binary variable $q$ says which is first; with a *big-M*, here $H$, the other row says nothing:
# $\mathrm{end}_i \le \mathrm{start}_j + H (1 - q)$ and $\mathrm{end}_j \le \mathrm{start}_i + H
# q$.

# %%
on_core = {t: (S[t], p[t]) for t in p}
on_channel = {v: (L[v], s[v]) for v in loaded} | {v: (W[v], s[v]) for v in stored}
for resource, activities in (("core", on_core), ("channel", on_channel)):
    for i, j in combinations(activities, 2):
        first = pulp.LpVariable(f"{resource}_{i}_before_{j}", cat="Binary")
        (start_i, cycles_i), (start_j, cycles_j) = activities[i], activities[j]
        model += start_i + cycles_i <= start_j + H * (1 - first)
        model += start_j + cycles_j <= start_i + H * first
print(len(model.constraints) - continuous_rows)

# %% [markdown]
# **No byte twice.** Two buffers lie apart in time, or one below the other: at least one of four
# binary variables is 1.
#
# - $Z_v \le A_w + H(1 - q_1)$, $Z_w \le A_v + H(1 - q_2)$,
# - $o_v + s_v \le o_w + C(1 - q_3)$, $o_w + s_w \le o_v + C(1 - q_4)$,
# - $q_1 + q_2 + q_3 + q_4 \ge 1$.
#
# This is packing and scheduling in one model; many ILPs for scratchpads stop at sums of bytes.

# %%
before = len(model.constraints)
for v, w in combinations(s, 2):
    q = [
        pulp.LpVariable(f"{how}_{v}_{w}", cat="Binary") for how in ("early", "late", "low", "high")
    ]
    model += Z[v] <= A[w] + H * (1 - q[0])
    model += Z[w] <= A[v] + H * (1 - q[1])
    model += o[v] + s[v] <= o[w] + C * (1 - q[2])
    model += o[w] + s[w] <= o[v] + C * (1 - q[3])
    model += pulp.lpSum(q) >= 1
binaries = [one for one in model.variables() if one.cat == pulp.LpInteger]
pd.Series(
    {
        "variables": len(model.variables()),
        "of these binary": len(binaries),
        "rows": len(model.constraints),
        "of these for addresses": len(model.constraints) - before,
    }
)

# %% [markdown]
# ## Its optimum
#
# HiGHS solves it, and the package's own exact solvers, which know more freedom (several loads of
# one buffer, spills), find nothing better here; the checker accepts the plan.

# %%
solver = pulp.HiGHS(msg=False, timeLimit=LIMIT)
model.solve(solver)
by_hand = round(pulp.value(model.objective))
result = spmilp.solve(problem, solver="milp", time_limit=LIMIT)
print(f"by hand {by_hand:,}, spmilp {result.makespan:,} ({result.status})")
where = {v: [round(each.value()) for each in (A[v], Z[v], o[v])] for v in s}
display(pd.DataFrame(where, index=["there from", "until", "offset"]).T)

# %%
result.memory_map()

# %%
result.timeline(chain=True)

# %% [markdown]
# ## Its relaxation
#
# Without the integers all the disjunctions are gone: each $q$ takes the value that makes both of
# its rows slack. What is left is the longest path through the data, and no bytes at all. A
# smaller scratchpad does not change this bound; the package's bounds see the work of the core and
# the bytes over the channel together.

# %%
for one in binaries:
    one.cat = pulp.LpContinuous
model.solve(solver)
relaxation = pulp.value(model.objective)
for one in binaries:
    one.cat = pulp.LpInteger
bound = spmilp.bound(problem)
print(f"relaxation {relaxation:,.1f}; optimum {by_hand:,}")
print(f"the package's bound, without any search: {bound.value:,} ({bound.name})")

# %% [markdown]
# A row that holds in every plan and sees a whole resource lifts the relaxation. Task *a* is the
# first, so before the core begins, two loads have been through the one channel; then the core has
# all the work to do; then the output leaves.

# %%
strengthened = model.copy()
strengthened += s["x"] + s["w_a"] + sum(p.values()) + s["y_c"] <= M
for one in binaries:
    one.cat = pulp.LpContinuous
strengthened.solve(solver)
print(f"relaxation with that row {pulp.value(strengthened.objective):,.1f}")
for one in binaries:
    one.cat = pulp.LpInteger

# %% [markdown]
# ## Less memory
#
# By hand, a buffer is loaded once and stays for all of its uses. The package's model may give a
# buffer up and load it again, or store what a task has written and load it later. With less memory
# that decides whether there is a plan at all.

# %%
rows = []
for size in (512, 464, 432, 416, 384, 352, 336, 320):
    smaller = model.copy()
    for v in s:
        smaller += o[v] <= size - s[v]
    smaller.solve(solver)
    is_solved = smaller.sol_status == pulp.LpSolutionOptimal
    package = spmilp.solve(
        residual_block(machine.replace(spm=size)), solver="milp", time_limit=LIMIT
    )
    rows.append(
        {
            "bytes": size,
            "by hand": f"{pulp.value(smaller.objective):,.0f}" if is_solved else "no plan",
            "spmilp": package.status if package.makespan is None else f"{package.makespan:,}",
            "status": package.status,
            "loads": None if package.plan is None else len(package.transfers) - len(stored),
        }
    )
pd.DataFrame(rows).set_index("bytes")

# %% [markdown]
# ## The package's model
#
# It has a *candidate residency* for each slice in each memory that may hold it, as often as it
# may come back; fills by every DMA engine that can reach it; cores, routes with their links,
# multicasts, reads in other scratchpads, bytes in place. Its disjunctions have no common $H$:
# each has the least number that its own rows need. The docstrings of
# `spmilp.solvers.exact.formulation` give every family with its argument. What it builds for the
# block, by families of variables:

# %%
file = machine_file.with_name("residual_block.mps")
write_model(problem, file)
_, written = pulp.LpProblem.fromMPS(str(file))
families = Counter(re.sub("[0-9_]+", " ", each.name).strip() for each in written.variables())
print(f"{len(written.variables())} variables, {len(written.constraints)} rows")
pd.Series(dict(families.most_common()), name="variables").to_frame()

# %% [markdown]
# The same file can be given to any other solver: `spmilp solve --write-model FILE.mps`.

# %% [markdown]
# ## A search
#
# Incumbent and bound of the MILP on a piece of ResNet-8 with six tasks on one core, over the
# seconds.

# %%
piece = spmilp.load_problem("../instances/problems/residual-6t-1c-tight-balanced.json")
searched = spmilp.solve(piece, solver="milp", time_limit=LIMIT)
display(searched)
searched.convergence()
