"""Command lists: how firmware runs a plan by waiting for events instead of cycles.

`commands` data classes; `activities` tasks and transfers in the lists that run them; `accesses`
the bytes that each touches; `last_access`, `order` what must come after what; `events` waits and
signals; `build` all of it in turn.
"""
