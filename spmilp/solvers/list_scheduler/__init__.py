"""A forward list scheduler that keeps every scratchpad's real contents, addresses included.

Tasks are placed one after another in a given order. For each one the scheduler brings the slices
that it reads into the core's memory, evicting what is needed last, reserves bytes for what it
writes, and starts it as early as all that allows. Every decision is final and has its cycles and
its addresses at once, so that the next task can always wait for what came before: there is no
deadlock, and a plan comes out whenever each task's working set fits.

    arrays      problem and machine as flat integer arrays
    timeline    what engines and links carry, cycle by cycle
    space       who lies where in each memory, and from when on a byte is free
    decode      order and cores in, complete schedule out
    orders      in which order tasks are placed
    assign      on which cores
    extract     arrays out, plan in the project's own terms
    solver      the portfolio of orders and assignments
"""
