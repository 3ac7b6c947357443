"""Solvers: from problems to plans; each is a :class:`spmilp.solvers.common.solver.Solver`.

base      what every solver takes and returns
common    what every solver needs whatever its method
auto      the portfolio: which solvers a problem gets, in turn, for how long
settling  plans that keep to pins on addresses, on what stays and on ends

schedule  the list scheduler: schedules built task by task under many rules, and begun anew with
          changes; its compiled kernels
justify   a plan as a partial order: justification, packing anew, redundant transfers
improve   large-neighbourhood search on such plans
exact     the joint decision, exactly: one formulation, for constraint programming and for a MILP
traffic   what stays in which memory, for little DRAM traffic or energy
peak      scratchpads cut shorter by bisection, for a small peak
"""
