"""Solvers: from problems to plans; each is a :class:`spmilp.solvers.common.solver.Solver`.

base            what every solver takes and returns
common          what every solver needs whatever its method
auto            the portfolio: which solvers a problem gets, in turn, for how long
settling        plans that keep to pins on addresses, on what stays and on ends

list_scheduler  schedules built task by task under many rules, and begun anew with changes
lns             large-neighbourhood search on a plan as a partial order
residency       what stays in which memory, for little DRAM traffic or energy
peak            scratchpads cut shorter by bisection, for a small peak
cpsat, milp     the joint decision, exactly, by constraint programming and by a MILP

formulation     what the exact solvers share: candidate residencies, transfer options, extraction
kernels         compiled tables, timelines and serial schedule generation for the heuristics
partial_order   partial-order schedules: justification, packing anew, redundant transfers
"""
