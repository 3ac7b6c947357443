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
import pandas as pd
from IPython.display import display

import spmilp

# %matplotlib inline

# %% [markdown]
# ## The plan
#
# Loading cleans the graph up and fuses operators; lowering cuts each fused operator into tiles. The
# list scheduler then decides cores, start cycles, addresses, lifetimes and transfers in one forward
# pass per rule that it tries, and the checker computes everything again from the problem and the
# plan alone: `result.plan` is `None` unless it accepts.

# %%
result = spmilp.solve("../models/resnet8_int8.onnx", "mesh4x4", solver="list")
display(result)

# %% [markdown]
# The gap is `(objective - bound) / objective`: no plan for this problem can be better by more than
# that. Who does how much:

# %%
result.cores[["name", "tasks", "busy", "utilisation"]].round(3)

# %% [markdown]
# ## The problem
#
# This is all that a solver sees: tasks with their cycles, buffers with their bytes, and the
# machine.

# %%
problem = result.problem
pd.Series(
    {
        "tasks": len(problem.tasks),
        "buffers": len(problem.buffers),
        "cores": len(problem.machine.cores),
        "bytes of all buffers": sum(buffer.bytes for buffer in problem.buffers),
    }
)

# %% [markdown]
# ## The memory map
#
# Every residency of a slice in a scratchpad is a rectangle of time by address. The dashed line is
# the peak, and the black curve the live bytes, below which no packing of these lifetimes can be;
# `zoom=False` shows the whole capacity, a red line.

# %%
spms = result.memories.query("kind == 'spm'").sort_values("peak", ascending=False)
result.memory_map(spms["name"].head(1))

# %%
result.memory_map()

# %% [markdown]
# ## The timeline
#
# Tasks per core (a colour for each fused operator) above transfers per DMA channel. Framed is the
# critical chain: each of its tasks and transfers had to wait for the one before it.
# `result.report()` shows the same with every cause, to zoom and to click.

# %%
result.timeline(chain=True)

# %% [markdown]
# ## The tables behind it
#
# Every plan is three tables: tasks, residencies, transfers.

# %%
result.tasks.head()

# %%
result.transfers.head()

# %% [markdown]
# ## Other machines
#
# A machine is the name of a preset or a file, or one of these with a few numbers changed. Tile
# sizes follow the machine: an Epiphany core has 32 KiB, and so the same network becomes more and
# smaller tasks there.

# %%
small = spmilp.load_machine("mesh4x4").replace(spm="32KiB", dram_rate=8)
answers = {
    machine: spmilp.solve("../models/resnet8_int8.onnx", machine, solver="list")
    for machine in ("mesh4x4", small, "edge16", "epiphany3")
}
pd.DataFrame(
    {
        "tasks": len(answer.tasks),
        "transfers": len(answer.transfers),
        "makespan": answer.makespan,
        "bound": answer.bound,
        "gap": answer.gap,
        "dram_traffic": answer.dram_traffic,
        "peak_spm": answer.peak_spm,
    }
    for answer in answers.values()
).set_index(pd.Index([answer.problem.machine.name for answer in answers.values()], name="machine"))
