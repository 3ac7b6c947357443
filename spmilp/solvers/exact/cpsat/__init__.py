"""Everything in one constraint program, with proofs: the CP-SAT solver.

The model and the steps of the search are those of :mod:`spmilp.solvers.exact.formulation`.

- :mod:`.solver`: what the search spends, and the neighbourhoods of the best plan.
- :mod:`.inquiry`: one run of CP-SAT: for plans in one go, for a bound as questions with targets.
"""
