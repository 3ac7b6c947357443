"""Published systems as policies on the same problems, each named after its source.

onsram             whole data structures pinned in scratchpads, by a figure of merit
structures         the data structures that OnSRAM and TOpLib pin or promote
cosma              order, addresses and spills of one scratchpad in one exact model
toplib             data kept in what the partitions of a coloured interference graph leave
rammer             tasks of a wave of operators appended to the cores where they end first
cdm                homes and replicas of buffers in scratchpads, with the contention of links
set                layers on parts of the chip by a tree of cuts, by simulated annealing
stream             each layer on one set of cores, by a genetic algorithm
scheduled          from cores and an order to a plan, by serial schedule generation
one_after_another  the base class of policies, a core for each task, and a plan written down step by
                   step, with addresses and short times

What a policy shares with the solvers (formulation, packing, shortening of times) it takes from
there; what its paper leaves open is stated in its docstring.
"""
