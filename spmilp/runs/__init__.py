"""Many solves: solvers side by side, and networks on machines of many sizes.

jobs       solves as rows of a table; child processes that carry them out; the rows of a folder
cluster    the same on Dask workers
frames     rows as tidy tables; what is compared with what; CSV
compare    ``spmilp.compare``
points     what is swept: values of fields; one job for each combination
sweep      ``spmilp.sweep``; warm starts along it
target     the smallest value that is good enough
"""
