"""What the exact models of ``cpsat``, ``milp`` and ``residency`` share, without any solver library.

From a problem to what a model may decide:

- :mod:`.tables`: a problem's lookups: pools of equal cores, readers and writers, blocks of memory.
- :mod:`.transfer_options`: the transfers that a machine offers for a slice, with cycles and costs.
- :mod:`.places`: which slices lie inside a DRAM tensor, and which of them share elements.
- :mod:`.candidates`: in which memories a residency of a slice can be of use.

From a solution back to a plan:

- :mod:`.extraction`: what a solution decides, as plain integers, to a plan that has times but no
  addresses yet.
- :mod:`.addresses`: addresses for such a plan, or a set of residencies that has none; by
  :mod:`.offsets` and, where both ends of transfers must be congruent,
  :mod:`.joint_packing` (the only module that imports OR-Tools, and only when it is needed).
- :mod:`.infeasibility`: why there is no plan, in words.
"""
