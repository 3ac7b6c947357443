"""What every solver needs whatever its method.

context     one solve: problem, limits, hint, and what is computed once for all its solvers
clock       wall, processor and deterministic time of one solve
fit         whether each task's working set fits a scratchpad
solver      the base class of all solvers
"""
