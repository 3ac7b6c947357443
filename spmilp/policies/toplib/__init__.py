"""TOpLib: colours of an interference graph share partitions, and what is left holds promoted data.

Li et al., "TOpLib", NPC 2020 (LNCS 12639, doi 10.1007/978-3-030-79478-1_1), IJPP 2021 (doi
10.1007/s10766-021-00701-6): memory reuse assisted by a compiler, for operators written by hand on
accelerators with scratchpads.

What is taken: live ranges by data-flow analysis over a control-flow graph, an interference graph
for each address space, greedy colouring, a partition for each colour as large as the largest value
of that colour, promotion of off-chip data into what is left.

What it leaves open, or has otherwise, and what is done here:

- The program of a scratchpad is that of the tasks on its cores, in the order of ``onsram``, in a
  loop over inferences: for each task its loads, its computation, its stores.
- At first all data lies off chip; values of the program are the operands, results and scratch that
  each task streams. The graph is coloured by decreasing size.
- The order of promotion is not known. Here data comes first of which a block of place saves most
  bytes from and to DRAM; it takes the partition with room in time that has to grow least, or one of
  its own.
- A plan's addresses are packed, so that data of different colours may lie in each other's
  partitions. They always exist where the partitions fit; where those of streams alone do not, and
  tasks do, nothing is promoted.

Modules: :mod:`.liveness` (live ranges), :mod:`.partitions` (colouring, promotion), :mod:`.solver`.

Not taken: what ``onsram`` does not take.
"""
