"""A small relaxation: tasks, what arrives in which memory for them, and for how long it is kept.

Of a plan it keeps where and when tasks run, the transfers that bring a slice into a memory (each
with whether it comes out of a DRAM, and when), and what a memory holds for a task that will read
it. What else there is, it leaves out: which copy a transfer reads, which way it takes, and how long
a copy stays for others. So every plan gives a solution of the same or a smaller value, and the
optimum is a lower bound; its proof is cheaper than that of the relaxation with open stays, for
there are no pairs of residencies in it.
"""
