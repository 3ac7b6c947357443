"""Joint windows: CP-SAT decides what stays where, what fills it and from where, with all times.

- ``search``: one window after another, and what is free in each.
- ``region``: free tasks and transfers, and the rest of the schedule as their boundary.
- ``model``: the CP-SAT model: which of several ``holders`` serves each read, and what overwrites
  what; ``deliveries``: pools of tasks, holders, and the transfers that may fill them.
- ``result``: a schedule with what was decided.
"""
