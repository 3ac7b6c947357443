"""From a network, a machine and tilings to a problem.

    lower             the whole line: groups to tiles, buffers, slices, tasks
    tiling, groups    how an output is cut; what a part of a group reads and computes
    storage           buffers, the DRAM of each tensor, and the slices that tasks read
    limits            what DMA can move; which memories hold a task
    cost, rates       cycles and energy of a tile; capacities and rates of a machine
Choosing the tilings is the subject of :mod:`spmilp.tile_selection`.
"""
