"""Plans as partial-order schedules: arrays that compiled passes read, and what shortens them.

- ``schedule``: the arrays, without times and with; ``to_plan`` converts back.
- ``from_plan``: the arrays of a plan, and which residencies follow each other on the same bytes.
- ``context``: what stays the same while a plan's times and addresses change.
- ``profiles``: what resources carry and memories hold over time, as step functions.
- ``forward`` and ``backward``: the passes of serial schedule generation, with addresses as they
  are or with capacity only.
- ``repacking``: double justification, and new addresses for its times; ``shortening``: both, from
  plan to plan.
- ``late_transfers`` and ``early_loads``: transfers that leave bytes to others, and loads that take
  them.
- ``redundant_transfers`` and ``dram_bypass`` (with ``bypass_kernels``): transfers that a plan can
  do without, or that need not go through DRAM; ``transfer_options``: how slices can be sent.
"""
