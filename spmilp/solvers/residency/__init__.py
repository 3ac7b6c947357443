"""Which slices memories keep between uses: few bytes moved, one task after another.

Tasks run in a sequence, and nothing runs beside anything else. What is left to decide is the order
of the tasks and their memories, which slices are kept between two uses, which are stored and loaded
again, and where each residency lies. A plan in which one thing happens after the other is valid
whatever the cycles; its times are made short at the end.

- :mod:`.solver`: the solver, and its search over sequences and windows.
- :mod:`.scope`: the order of tasks, and what a window leaves open.
- :mod:`.use_points`: the steps at which a slice may have a reason to be in a memory.
- :mod:`.model`, from :mod:`.variables`, :mod:`.constraints` and :mod:`.occupancy` (what may lie in
  a memory at a step, and where).
- :mod:`.extract`: from its solution to decisions, and to a plan with short times.
"""
