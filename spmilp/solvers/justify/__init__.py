"""Plans as partial-order schedules: arrays that compiled passes read, and what shortens them.

- ``schedule``: the arrays, without times and with.
- ``context``: from a plan to its arrays and back, and what stays the same while they change.
- ``transfer_options``: how slices can be sent.
- ``profiles``: what resources carry and memories hold.
- ``passes``: serial schedule generation, forward and backward, with addresses or capacity only.
- ``dram_bypass``: transfers that need not go through DRAM.
- ``repacking``: open, justified, packed; ``shortening``: the same from plan to plan.
"""
