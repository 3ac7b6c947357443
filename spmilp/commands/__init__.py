"""Command lists: how firmware runs a plan by waiting for events instead of cycles.

`commands` data classes; `order` what must come after what; `build` waits, signals and the lists.
"""
