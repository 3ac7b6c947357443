"""Many solves: solvers side by side, and networks on machines of many sizes.

run        one solve as a row of a table: figures, history, the checker's verdict
jobs       solves that are to be made, in child processes
cluster    the same on Dask workers
store      rows of a folder, line by line, with their plans
frames     rows as tidy tables; what is compared with what; CSV
figures    performance profiles, and what is not dominated
compare    ``spmilp.compare``
points     what is swept: values of fields, machines, options; one job for each combination
sweep      ``spmilp.sweep``; warm starts along it
target     the smallest value that is good enough
read       sweeps in YAML
"""
