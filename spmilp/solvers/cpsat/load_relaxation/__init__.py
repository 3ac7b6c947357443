"""A small relaxation: tasks, what is loaded into which memory for them, and how long it is kept.

Of a plan it keeps where and when tasks run, the transfers that bring a slice into a memory (its
*loads*, each with whether it comes out of a DRAM, and when), and what a memory holds for a task
that will read it. It leaves out which copy a transfer reads, which route it takes, and how long a
copy stays for others. So every plan gives a solution of the same or a smaller value, and the
optimum is a lower bound; its proof is cheaper than that of the relaxation with open candidates, for
there are no pairs of residencies in it.

- :mod:`.loads`: the variables: loads into memories, and stores to DRAM.
- :mod:`.constraints`: what is loaded or read was somewhere before; what a memory keeps for readers.
- :mod:`.model`: the model of all that with the engines and links that loads hold; its objective.
"""
