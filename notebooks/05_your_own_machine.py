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
# # Your own machine
#
# A machine is one YAML file: cores, scratchpads with their DMA engines, links, DRAM. This
# notebook writes one for a chip with four cores on a mesh, maps a network onto it, sees what
# binds the plan, and changes the machine. [machines](../docs/machines.md) explains every field.
#
# | variable | meaning | without it |
# |---|---|---|
# | `SPMILP_SECONDS` | time limit of each solve, in seconds | 20 |

# %%
import os
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from IPython.display import display

import spmilp

# %matplotlib inline

MODEL = "../models/ds_cnn_int8.onnx"
LIMIT = float(os.environ.get("SPMILP_SECONDS", "20"))

# %% [markdown]
# ## The file
#
# Units stand in the names of fields, numbers have a source. A number without one counts as not
# verified, and every summary says so.

# %%
file = Path(mkdtemp()) / "mychip.yaml"
file.write_text(
    """\
name: mychip
description: Two by two cores on a mesh, one DRAM port at the west edge.
frequency_mhz: 400

topology:
  type: mesh
  columns: 2
  rows: 2
  rate_bytes_per_cycle: 8
  latency_cycles: 2

core_kinds:
  core:
    arrays:
      - {dtype: int8, K: 8, C: 8}
    lanes: {int8: 16}
    launch_cycles: 60

scratchpads:
  - cores: {core: 1}
    size_kib: 64
    alignment_bytes: 16
    reserved_byte_ranges: [[0, 2048]]
    dma:
      - {channels: 1, setup_cycles: 30, rate_bytes_per_cycle: 8, dimensions: 3}

dram:
  - sites: [r_0_0]
    rate_bytes_per_cycle: 2
    latency_cycles: 80
    alignment_bytes: 16

provenance:
  - fields: ["*"]
    source: "Assumed for this notebook."
    verified: false
"""
)
machine = spmilp.load_machine(file)
display(machine)

# %% [markdown]
# A mistake is an error that names the field, what it found and what it expected:

# %%
wrong = file.with_name("wrong.yaml")
wrong.write_text(file.read_text().replace("alignment_bytes: 16", "alignment_bytes: 12", 1))
try:
    spmilp.load_machine(wrong)
except spmilp.SpmilpError as error:
    print(str(error).removeprefix(f"{wrong.parent}/"))

# %% [markdown]
# ## A plan for it

# %%
result = spmilp.solve(MODEL, machine, time_limit=LIMIT)
display(result)

# %%
result.timeline(chain=True)

# %%
result.memory_map()

# %% [markdown]
# ## What binds it

# %%
print(result.explain())

# %% [markdown]
# ## Other numbers
#
# `replace` sets some of the numbers anew; any field has a path. `bound` holds for the tiles of
# that row, `any tiles` for all tiles. Each row is a search of its own, so in a few seconds a
# machine with more of something may get a slightly worse plan; `spmilp.sweep` hands plans on, so
# that it does not.

# %%
changes = {
    "as it is": {},
    "DRAM twice as fast": {"dram_rate": 4},
    "two DMA channels": {"dma_channels": 2},
    "128 KiB each": {"spm": "128KiB"},
    "half the time to start a task": {"fields": {"core_kinds.core.launch_cycles": 30}},
}
answers = {
    change: spmilp.solve(MODEL, machine.replace(**given) if given else machine, time_limit=LIMIT)
    for change, given in changes.items()
}
pd.DataFrame(
    {
        "cycles": answer.makespan,
        "bound": answer.bound,
        "any tiles": answer.roofline.cycles if answer.roofline else None,
        "B to and from DRAM": answer.dram_traffic,
        "peak, B": answer.peak_spm,
    }
    for answer in answers.values()
).set_index(pd.Index(answers, name="machine"))

# %% [markdown]
# ## A problem by hand
#
# No network is needed: `ProblemBuilder` takes tasks with their cycles and data with their bytes,
# for cores whose cost model is yours.

# %%
builder = spmilp.ProblemBuilder(machine, name="filter bank")
signal = builder.input("signal", (4, 4096), "int8")
taps = builder.weight("taps", (4, 1024), "int8")
for band in range(4):
    filtered = builder.task(
        f"filter {band}",
        reads=[signal, taps[band : band + 1]],
        writes=(f"filtered {band}", (1, 4096), "int8"),
        cycles=9000,
    )
    energy = builder.task(
        f"energy {band}", reads=filtered, writes=(f"energy {band}", (1, 64), "int32"), cycles=1200
    )
    builder.output(energy, tensor=("energies", (4, 64)), at=(band, 0))
by_hand = spmilp.solve(builder.build(), time_limit=LIMIT)
display(by_hand)

# %%
by_hand.timeline(chain=True)
