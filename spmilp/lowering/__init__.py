"""From a network, a machine and tilings to a problem.

    lower             the whole line: groups to tiles, buffers, slices, tasks
    tiling, groups    how an output is cut; what a part of a group reads and computes
    tasks             the tasks of a tiled group
    grid, initial     how tensors are cut into buffers, those that lie in DRAM at first among them
    storage, slices   buffers and the DRAM of each tensor; the slices that tasks read
    limits, fit       what DMA can move; which memories hold a task
    cost, rates       cycles and energy of a tile; capacities and rates of a machine
Choosing the tilings is the subject of :mod:`spmilp.tile_selection`.
"""
