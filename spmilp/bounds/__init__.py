"""Lower bounds that every valid plan obeys, each with its proof.

best                    all bounds on a problem, and the best of them
critical_path, paths    heads and tails of tasks: from chains, and from all before and after them
work, fractional_assignment   cores need time for the tasks that only they can run
traffic, movement, cut_links  what crosses the links of a DRAM needs time
occupancy, working_set  scratchpads have so many bytes for so many cycles; the least peak
spills                  what finds no space beside a working set goes to DRAM and comes back
stages                  a linear program of work, traffic and bytes, stage after stage
energy, distances       least energy of tasks, and of chains of transfers between memories
relaxation              a bound by search: CP-SAT without names for cores and addresses
prices                  prices for linear relaxations, by ascent on their duals
roofline, compulsory    bounds on a network for any tiling
"""
