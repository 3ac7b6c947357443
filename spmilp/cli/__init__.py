"""The command ``spmilp``: each verb imports what it needs when it runs.

main                the verbs; what an error says and its exit code
solve               plans of a problem or a network, and the log of the search
plans               check, replay, report, explain, export: plans that are there already
runs                compare and sweep: many solves as one table
facts               bound, calibrate, machines, solvers
pack                offsets for given lifetimes, or why there are none
arguments           verbs from functions and their docstrings; readers of values
output, interrupts  tables, JSON and messages; Ctrl-C and SIGTERM
"""
