"""Everything in one constraint program, with proofs: the CP-SAT solver.

The model is that of :mod:`spmilp.solvers.exact.formulation`. The search, from the outside in:

- :mod:`.solver`: the order of its steps.
- :mod:`.phases`: its settings and switches; the steps that find plans, those that prove bounds, and
  what is searched around the best plan in turns, each within a budget.
- :mod:`.inquiry`: one run of CP-SAT, as questions with targets, in one go or by its own
  neighbourhoods; its parameters.
"""
