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
# # Published results
#
# Each system that had an idea about scratchpads printed figures. Here they stand beside ours: the
# same quantity, on networks, machines and instances as near to theirs as what they state allows.
# All rows are on [the page of published results](../benchmarks/notes/published_results.md), which
# `python -m benchmarks.published` makes; three sources are measured again below.

# %%
# The scripts are run from the project's folder.
# %cd -q ..

# %%
from itertools import islice

import pandas as pd
from IPython.display import display

from benchmarks.published.rows import DATA, find_source, read_kept

# %matplotlib inline
pd.set_option("display.max_colwidth", None)

# %% [markdown]
# ## All rows
#
# "none" stands where a publication gives no figure for the quantity, or none that we could read.

# %%
rows = pd.DataFrame(
    {
        "source": kept.source,
        "quantity": kept.row.quantity,
        "published": kept.row.published,
        "ours": kept.row.ours,
        "why they differ": kept.row.reason,
    }
    for kept in read_kept()
)
for source, those in rows.groupby("source", sort=False):
    print(find_source(source).title)
    display(those.drop(columns="source").set_index("quantity"))

# %% [markdown]
# ## Three of them again
#
# OnSRAM's speed-ups by whole nodes, TVM's latency hiding on its VDLA, and the tiles of SMAUG's
# unit tests, measured now; `as before` says whether the row on the page is the same.

# %%
before = {(kept.source, kept.row.quantity): kept.row.ours for kept in read_kept()}
again = []
for source, most in (("onsram", None), ("tvm", None), ("smaug", 3)):
    for row in islice(find_source(source).rows(DATA), most):
        is_same = row.ours == before.get((source, row.quantity))
        again.append((source, row.quantity, row.published, row.ours, is_same))
again = pd.DataFrame(again, columns=["source", "quantity", "published", "ours", "as before"])
display(again)

# %% [markdown]
# ## OnSRAM: how much a scratchpad can buy at all
#
# The ceiling is the speed-up of a scratchpad without limit over everything through DRAM; the
# static policy pins whole buffers for their whole lives. Where the network is the same one,
# ceilings should agree; SqueezeNet and ResNet-50 come in several versions, and depthwise
# convolutions (MobileNetV1) depend on what rate one gives them.

# %%
onsram = again[again["source"] == "onsram"]
parts = onsram["quantity"].str.extract(r"^speed-up (?P<what>.*), (?P<network>[\w-]+)$").dropna()
figures = onsram.loc[parts.index, ["published", "ours"]].apply(
    lambda column: column.str.extract(r"^([\d.]+)", expand=False).astype(float)
)
table = parts.join(figures).pivot(index="network", columns="what", values=["published", "ours"])
table.columns = [f"{what}, {who}" for who, what in table.columns]
axes = table[sorted(table.columns, key=lambda name: (name.split(",")[0], name))].plot.bar(
    rot=0, figsize=(11, 4), color=["#0072B2", "#56B4E9", "#D55E00", "#E69F00"], ylabel="speed-up"
)
axes.axhline(1, color="black", linewidth=0.8)

# %% [markdown]
# ## TVM: hiding the latency of memory
#
# Utilisation of the multipliers when load, compute and store follow each other, when they run as
# virtual threads that wait for tokens, and when the list scheduler places every transfer.

# %%
tvm = again[again["source"] == "tvm"]
parts = tvm["quantity"].str.extract(r"`(?P<solver>[^`]+)`, DRAM (?P<rate>\d+) B/cycle")
used = parts.assign(
    utilisation=tvm["ours"].str.extract(r"^(\d+) %", expand=False).astype(float),
    published=tvm["published"].str.extract(r"^(\d+) %", expand=False).astype(float),
)
axes = used.pivot(index="solver", columns="rate", values="utilisation").plot.bar(
    rot=0, ylabel="utilisation, %", ylim=(0, 100), color=["#56B4E9", "#0072B2"]
)
axes.legend(title="DRAM, B/cycle", loc="center left", bbox_to_anchor=(1, 0.5))
for place, solver in enumerate(sorted(used["solver"].unique())):
    figure = used.loc[used["solver"] == solver, "published"].iloc[0]
    if pd.notna(figure):
        axes.hlines(figure, place - 0.3, place + 0.3, color="black", linestyle="--")

# %% [markdown]
# Dashed is what TVM's paper has. Neither the DRAM's rate nor the networks' schedules are stated
# there.
