"""CDM: buffers placed in scratchpads, replicated or off chip, with the contention of links.

Venkataramani, Chan and Mitra, "Scratchpad-Memory Management for Multi-Threaded Applications on
Many-Core Architectures" (coordinated data management), ACM TECS 18(1), 2019, doi 10.1145/3301308.
Its equations, its iteration rule and its benchmarks could not be read: the program and the
algorithm here are a reconstruction from its abstract.

What is taken: private and shared data are told apart and placed at compile time, in the scratchpad
of a core or off chip; shared data is replicated in several scratchpads if that shortens the access
or the contention of links on XY routes; an exact program, and an iterative algorithm that scales.

What the paper leaves open, or has otherwise, and what is done here:

- Its threads are on given cores; here tasks are, by runs of neighbouring tiles of an operator.
- Its cores load and store single words; here what a task reads comes by transfers. Each reader
  gets a buffer from its home or from DRAM, for every task or once, as a replica of its own.
- The time of a wave of operators is that of its busiest core, work and transfers one after another,
  or of its busiest link: the contention. Waves follow each other as between barriers.
- Its variables seem to keep their places for the whole program; here for their whole lives.
- A buffer is written once here, so that replicas stay equal. A home is sought among four of the
  scratchpads that use the buffer, and for private data two more near by.
- Addresses are found afterwards; where there are none together, the largest of what is kept stays
  away from there.

Modules: :mod:`.uses` (who uses what in which wave), :mod:`.parts` and :mod:`.data` (of what a
placement is made, its cost), :mod:`.iterative`, :mod:`.program` (of ``cdm:ilp``), :mod:`.solver`.

Not taken: machines without exactly one DRAM, cores that work in DRAM, data that begins or ends in a
scratchpad, buffers without a transfer straight between DRAM and scratchpad, tasks whose streams do
not fit; and for ``cdm:ilp`` programs of more than 20,000 variables.
"""
