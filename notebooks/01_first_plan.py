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
# # A first plan
#
# From an ONNX model to a checked plan: a table, a memory map and a timeline. The model is ResNet-8
# of MLPerf Tiny, in int8; the machine is the generic 4×4 mesh with 512 KiB of scratchpad per core.
# What `spmilp solve` prints is computed from the same functions.

# %%
from dataclasses import asdict

import pandas as pd

from spmilp.pipeline import map_model, map_problem, problem_from_model
from spmilp.plan.frames import task_frame, transfer_frame
from spmilp.report.memory_map import memory_map
from spmilp.report.summary import summarise
from spmilp.report.timeline import timeline

# %matplotlib inline

# %% [markdown]
# ## The problem
#
# Loading cleans the graph up and fuses operators; lowering cuts each fused operator into tiles. The
# result is all that a solver sees: tasks with their cycles, buffers with their bytes, and the
# machine.

# %%
problem = problem_from_model("../models/resnet8_int8.onnx", "mesh4x4")
pd.Series(
    {
        "tasks": len(problem.tasks),
        "buffers": len(problem.buffers),
        "cores": len(problem.machine.cores),
        "bytes of all buffers": sum(buffer.bytes for buffer in problem.buffers),
    }
)

# %% [markdown]
# ## The plan
#
# The list scheduler decides cores, start cycles, addresses, lifetimes and transfers in one forward
# pass per rule that it tries. The checker then computes everything again from the problem and the
# plan alone; `mapped.plan` is `None` unless it accepts.

# %%
mapped = map_problem(problem, solver="list")
assert mapped.plan is not None, mapped.violations
summary = summarise(problem, mapped.plan, mapped.result.bound, mapped.result.bound_source)
pd.Series(asdict(summary)).drop(["cores", "memories", "unverified"]).to_frame("value")

# %% [markdown]
# The gap is `(objective - bound) / objective`: no plan for this problem can be better by more than
# that. Who does how much:

# %%
pd.DataFrame([asdict(core) for core in summary.cores]).round(3)

# %% [markdown]
# ## The memory map
#
# Every residency of a slice in a scratchpad is a rectangle of time by address. The red line is the
# capacity, the dashed one the peak, and the black curve the live bytes, below which no packing of
# these lifetimes can be.

# %%
used = [use.memory for use in sorted(summary.memories, key=lambda use: -use.peak)]
memory_map(problem, mapped.plan, used[:1], zoom=True)

# %%
memory_map(problem, mapped.plan)

# %% [markdown]
# ## The timeline
#
# Tasks per core (one colour per fused operator) above transfers per DMA channel.

# %%
timeline(problem, mapped.plan)

# %% [markdown]
# ## The tables behind it
#
# Every plan is three tables: tasks, residencies, transfers.

# %%
task_frame(problem, mapped.plan).head()

# %%
transfer_frame(problem, mapped.plan).head()

# %% [markdown]
# ## Other machines
#
# A machine is the name of a preset or a file. Tile sizes follow the machine: an Epiphany core has
# 32 KiB, and so the same network becomes more and smaller tasks there.

# %%
rows = []
for machine in ("mesh4x4", "edge16", "epiphany3"):
    answer = map_model("../models/resnet8_int8.onnx", machine, solver="list")
    figures = summarise(
        answer.problem, answer.plan, answer.result.bound, answer.result.bound_source
    )
    rows.append(asdict(figures))
pd.DataFrame(rows).set_index("machine")[
    ["tasks", "transfers", "makespan", "bound", "gap", "dram_traffic", "peak_spm"]
]
