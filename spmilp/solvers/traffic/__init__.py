"""Which slices memories keep between uses: few bytes moved, one task after another.

Tasks run in a sequence, and nothing runs beside anything else. What is left to decide is the order
of the tasks and their memories, which slices are kept between two uses, and which are stored and
loaded again. Addresses are packed afterwards. A plan in which one thing happens after the other is
valid whatever the cycles; its times are made short at the end.

- :mod:`.solver`: the solver, its search over sequences and windows, and the way from a solution to
  a plan with short times.
- :mod:`.scope`: the order of tasks, what a window leaves open, and when slices may be of use.
- :mod:`.model`: the constraint program.
"""
