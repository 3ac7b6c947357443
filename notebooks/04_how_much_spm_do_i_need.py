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
# # How much scratchpad do I need?
#
# A chip is still on paper, a network has to run on it, and three numbers cost area or pins: bytes
# of scratchpad per core, channels of each DMA engine, and the rate of the DRAM. What does each of
# them buy? `spmilp.sweep` maps the network onto every combination and returns one table.
#
# | variable | meaning | without it |
# |---|---|---|
# | `SPMILP_SECONDS` | time limit of each row, in seconds | 20 |
# | `SPMILP_WORKERS` | rows that are solved side by side | 2 |

# %%
import os

import spmilp

# %matplotlib inline

MODEL, MACHINE = "../models/resnet8_int8.onnx", "mesh4x4"
LIMITS = {
    "time_limit": float(os.environ.get("SPMILP_SECONDS", "20")),
    "jobs": int(os.environ.get("SPMILP_WORKERS", "2")),
}
QUICK = LIMITS["time_limit"] < 5  # with so little time there are only a few rows

# %% [markdown]
# ## Scratchpad and DMA channels
#
# Plans of a smaller memory are handed on to the larger ones, so that more never makes a row
# worse; the tiles follow the size. A row is on the Pareto front if no other is at least as good
# in cycles, traffic and scratchpad, and better in one of them.

# %%
sizes = spmilp.sweep(
    MODEL,
    MACHINE,
    spm="16k,64k" if QUICK else "8k:128k",
    dma_channels=1 if QUICK else [1, 2, 4],
    pareto=["makespan", "dram_traffic", "spm"],
    **LIMITS,
).assign(
    **{"KiB per core": lambda rows: rows["spm"] / 1024},
    channels=lambda rows: rows.get("dma_channels", 1),
)
shown = ["spm", "channels", "objective", "bound", "gap", "dram_traffic", "peak_spm", "pareto"]
sizes[shown]

# %% [markdown]
# Cycles over the size of each scratchpad. Dotted is the bound of the plan with the most channels:
# no plan with its tiles takes less. What lies between is not known.

# %%
curves = sizes.pivot(index="KiB per core", columns="channels", values="objective").astype(float)
axes = curves.plot(logx=True, marker="o", ylabel="cycles", ylim=(0, None))
most = sizes[sizes["channels"] == sizes["channels"].max()].set_index("KiB per core")
most["bound"].astype(float).plot(ax=axes, linestyle=":", color="black")
axes.set_xticks(curves.index, [f"{size:g}" for size in curves.index])
axes.legend([f"{count} DMA channels" for count in curves] + ["bound"])
axes.minorticks_off()

# %% [markdown]
# Cycles against traffic, one colour for each size; crosses are dominated.

# %%
axes = None
for place, (size, rows) in enumerate(sizes.groupby("KiB per core")):
    for is_best, some in rows.astype({"objective": float, "dram_traffic": float}).groupby("pareto"):
        axes = some.plot.scatter(
            x="objective",
            y="dram_traffic",
            s=70,
            marker="o" if is_best else "x",
            color=f"C{place}",
            label=f"{size:g} KiB{'' if is_best else ', dominated'}",
            ax=axes,
        )
axes.set(xlabel="cycles", ylabel="bytes to and from DRAM")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

# %% [markdown]
# ## DRAM rate
#
# The same network with 32 KiB of scratchpad per core, as the DRAM gets faster.

# %%
rates = spmilp.sweep(
    MODEL, MACHINE, spm="32k", dram_rate=[4, 16] if QUICK else [1, 2, 4, 8, 16, 32], **LIMITS
).set_index("dram_rate")
axes = (
    rates[["objective", "bound"]]
    .astype(float)
    .plot(logx=True, marker="o", style=["-", "k:"], ylabel="cycles", ylim=(0, None))
)
axes.set_xticks(rates.index, [f"{float(rate):g}" for rate in rates.index])
axes.set_xlabel("bytes per cycle of the DRAM")
axes.minorticks_off()

# %% [markdown]
# ## The smallest that will do
#
# `target` looks for the smallest size that meets a makespan, by bisection; `verdict` says for
# each size that was tried whether it does, and, where a bound shows it, that none can.

# %%
wanted = int(sizes["objective"].astype(float).min() * 1.1)
found = spmilp.sweep(
    MODEL, MACHINE, spm="16k,64k" if QUICK else "8k:128k:1k", target=f"makespan={wanted}", **LIMITS
)
found[["spm", "objective", "bound", "verdict"]]

# %% [markdown]
# The same from the command line: `spmilp sweep MODEL -m MACHINE --spm 8k:128k:1k --target
# makespan=6000` ([sweeps](../docs/sweep.md)).
