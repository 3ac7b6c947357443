"""What every solver needs whatever its method.

context             one solve: problem, limits, hint, and what is computed once for all solvers
solver              the base class of all solvers; the best plan of one, and its bound
clock               wall, processor and deterministic time of one solve
reports             what is told to the user while solvers work, in whichever threads
fit                 whether each task's working set fits a scratchpad
operator_selection  which operator of a search comes next
intervals           which of several equal cores or channels serves what
"""
