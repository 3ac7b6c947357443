"""Which slices stay in a memory between their uses: few bytes moved, one task after another.

Tasks run in turn, and nothing runs beside anything else. What is left to decide is the order of the
tasks and their memories, which slices stay between two uses, which are stored and brought again,
and where each stay lies (:mod:`~spmilp.solvers.residency.model`). A plan in which one thing happens
after the other is valid whatever the cycles; its times are made short at the end.
"""
