"""Which slices stay in a scratchpad between their uses: few bytes moved, for a given order.

Tasks have an order and a memory each, and nothing runs beside anything else. What is left to decide
is which slices stay between two uses, which are stored and loaded again, and where each stay lies
(:mod:`~spmilp.solvers.residency.model`). A plan in which one thing happens after the other is valid
whatever the cycles; its times are then made short without touching the decisions.
"""
