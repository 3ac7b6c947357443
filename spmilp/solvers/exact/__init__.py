"""The joint decision of cores, transfers, residencies and addresses, exactly.

formulation  candidate residencies, transfer options, constraints, and the plan of a solution
cpsat        the search by CP-SAT
milp         the same formulation as rows, for a MILP solver
"""
