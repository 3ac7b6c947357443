"""One exact formulation, which ``cpsat`` solves, ``milp`` writes as rows, and others borrow from.

From a problem to what a model may decide:

- :mod:`.tables`: a problem's lookups: pools of equal cores, readers and writers, blocks of memory,
  places in tensors, and the transfers that a machine offers for a slice.
- :mod:`.candidates`: which residencies there may be, and what can fill and use each: in the whole
  problem or around a plan.

The model, in the terms of CP-SAT (only these modules load it):

- :mod:`.variables`, :mod:`.constraints` (the table of contents of the constraints),
  :mod:`.capacity`.
- :mod:`.model`: the objectives; it puts all together, with more residencies where a proof needs
  them.

From a solution back to a plan:

- :mod:`.translation`: a plan into the model as a hint, and a solution out of it.
- :mod:`.extraction`: what a solution decides, as plain integers, to a plan that has times but no
  addresses yet.
- :mod:`.addresses`: addresses for such a plan, or a set of residencies that has none.
- :mod:`.search`: the steps of a search, what it knows, and why there is no plan.
"""
