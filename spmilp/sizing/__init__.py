"""Sizing: the same networks on many machines, and the smallest machine that is good enough.

values          what fields of a machine are to be: lists, doublings, steps
grid, read      the points of a sweep; sweeps in YAML
store           rows of a folder, each durable as soon as it is finished
process, worker points in processes of their own, one at a time in each
engine, cluster points one after another, or on Dask workers
run, target     a whole sweep; the smallest value that meets a target
table, figure   frames, files, what is not dominated, and a picture of it
sweep           ``spmilp.sweep``
"""
