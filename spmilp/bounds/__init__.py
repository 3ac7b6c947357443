"""Lower bounds that every valid plan obeys, each with its proof.

    best            all bounds on a problem, and the best of them
    paths, cuts     heads and tails of tasks: by single chains, and by all that is around a task
    resources       cores, links of DRAMs, bytes beside a running task, and energy, each by itself
    stages          a linear program of work, traffic and bytes, stage after stage
    spills          what has no room beside a task goes to DRAM and comes back
    period          work and traffic of an inference, again and again in a stream of them
    movement        chains of transfers between memories: their least cycles, links and energy
    proof           a bound, and one that has not been computed yet
    linear_program  linear programs whose minimum is proven
    roofline        arithmetic and compulsory traffic of a network, for any tiling
    any_tiles       least peak and DRAM traffic of a network, for any tiling
    deadlines       those of several networks that no plan can keep

Only the last three know networks; the others take a problem.
"""
