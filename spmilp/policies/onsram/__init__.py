"""OnSRAM, static: whole data structures pinned in the scratchpad, all others through DRAM.

Pal, Venkataramani, Srinivasan and Gopalakrishnan, "OnSRAM: Efficient Inter-Node On-Chip Scratchpad
Management in Deep Learning Accelerators", ACM TECS 2022, doi 10.1145/3530909. Its figure of merit
and its order are known here from a public re-implementation (gkeramidasCSD-Group/Scale-Sim-SPM)
that quotes them; the weights 0.4, 0.5 and 0.1 are taken from there.

What is taken: the breadth- or depth-first order by node class, the figure of merit, results that
overwrite an operand whose life ends, pinning for whole lives only, no eviction. A structure's life
includes its last use.

What the paper leaves open, or has otherwise, and what is done here:

- Its nodes are whole operators, here they are tasks. It never pins weights, which each have one
  reader there. Here a weight that several tiles read may be pinned like any other buffer; one with
  a single reader gains nothing and never is.
- A problem has no operations to count: cycles stand for them.
- It has one scratchpad. Here each scratchpad is managed by itself, cores get runs of neighbouring
  tiles, and what one core writes and another reads goes through DRAM.
- It gives no addresses. Here they are found by packing; where pinned structures have none together,
  the one with the least merit is not pinned.
- Streamed operands and results have room while their task runs, in the same scratchpad.

Modules: :mod:`.structure` (lives, sizes, savings), :mod:`.structures` (what a choice of them
costs), :mod:`.task_structures` (those of a problem's tasks), :mod:`.order`, :mod:`.merit`,
:mod:`.exact` (the same choice as a 0/1 program, the solver ``onsram:exact``), :mod:`.pinned` (the
plan of a choice), :mod:`.solver`, :mod:`.eager` (``onsram:eager``, which knows no graph).

Not taken: machines without exactly one DRAM, cores that work in DRAM, data that begins or ends in a
scratchpad, and buffers without a transfer straight between DRAM and scratchpad.
"""
