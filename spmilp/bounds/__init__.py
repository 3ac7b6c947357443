"""Lower bounds that every valid plan obeys, each with its proof.

    best                   all bounds on a problem, and the best of them
    critical_path          heads and tails of tasks by single chains
    paths                  heads and tails by all that is around a task, with the propositions
    cuts, between, lags, least_times, cut_tables    the kernels for that, and their arrays
    memory_links           the links into a memory, and out of it
    work                   cores need time for the tasks that only they can run
    staggered              the same between the beginnings and the ends of cores, one by one
    traffic, movement      the links of DRAMs need time for all that crosses them
    working_set            the least peak; scratchpads have so many bytes for so many cycles
    spills                 data without space beside a working set goes to DRAM and returns
    stages, stage_demands  a linear program of work, traffic and bytes, stage after stage
    distances              chains of transfers between memories: their least cycles and energy
    energy                 energy of tasks, and of chains of transfers
    relaxation             by search: CP-SAT without names for cores and addresses
    prices                 prices for linear relaxations, and what they prove
    roofline, compulsory   bounds on a network, for any tiling: arithmetic and traffic
    chains, smallest_tiles    for any tiling: what groups compute and move one after the other
    any_tiles              for any tiling: the least peak and DRAM traffic
Only the last five know networks; the others take a problem.
"""
