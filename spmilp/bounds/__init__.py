"""Lower bounds that every valid plan obeys, each with its proof.

    best                   all bounds on a problem, and the best of them
    critical_path, paths   heads and tails of tasks: by chains, and by all around them
    work                   cores need time for the tasks that only they can run
    traffic, movement      the links of DRAMs need time for all that crosses them
    working_set            the least peak; scratchpads have so many bytes for so many cycles
    spills                 data without space beside a working set goes to DRAM and returns
    stages, stage_demands  a linear program of work, traffic and bytes, stage after stage
    distances              energy of tasks, and of chains of transfers between memories
    relaxation             by search: CP-SAT without names for cores and addresses
    prices                 prices for linear relaxations, and what they prove
    roofline, compulsory   bounds on a network, for any tiling
Only the last two know networks; the others take a problem.
"""
