"""The command ``spmilp``: one module per verb; each imports what it needs when it runs.

main, failures                     the verbs; what an error says and its exit code
solve, compare                     plans of a problem, of several solvers
check, replay, export              plans that are there already
bound, inspect, convert, machines  problems, models, machines
pack, pack_answer, pack_reason     offsets for given lifetimes, or why there are none
arguments, options                 options that several verbs have; readers of their values
output, progress, interrupts       tables and JSON; the line of progress; Ctrl-C and SIGTERM
"""
