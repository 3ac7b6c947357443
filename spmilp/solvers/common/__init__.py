"""What every solver needs whatever its method.

context   one solve: problem, limits, hint, what is computed once, what is reported
solver    the base class of all solvers; the best plan of one, and its bound
clock     wall, processor and deterministic time of one solve
fit       whether each task's working set fits a scratchpad
"""
