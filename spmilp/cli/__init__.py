"""The command ``spmilp``: one module per verb; each imports what it needs when it runs.

main                            the verbs; what an error says and its exit code
solve, solve_answer, compare    plans of a problem, of several solvers
sweep                           networks on many machines
check, export, report, explain  plans that are there already; replay is in check
bound, machines, calibrate      problems, machines and solvers, measured tiles
pack, pack_answer               offsets for given lifetimes, or why there are none
arguments                       options that several verbs have; readers of their values
output, interrupts              tables, JSON and the line of progress; Ctrl-C and SIGTERM
"""
