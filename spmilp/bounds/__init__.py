"""Lower bounds that every valid plan obeys, each with its proof.

    best                          all bounds on a problem, and the best of them
    critical_path, paths          heads and tails of tasks: by chains, and by all around them
    work, fractional_assignment   cores need time for the tasks that only they can run
    traffic, movement, cut_links  the links of DRAMs need time for all that crosses them
    occupancy, working_set        scratchpads have so many bytes for so many cycles; the least peak
    spills                        data without space beside a working set goes to DRAM and returns
    stages                        a linear program of work, traffic and bytes, stage after stage
    energy, distances             energy of tasks, and of chains of transfers between memories
    relaxation                    by search: CP-SAT without names for cores and addresses
    prices                        prices for linear relaxations, by ascent on their duals
    roofline, compulsory          bounds on a network, for any tiling
Only the last two know networks; the others take a problem.
"""
