"""Command lists: how firmware runs a plan by waiting for events instead of cycles.

`commands` data classes; `order` what must come after what; `pacing` what should; `build` waits,
signals and the lists; `loop` those of a stream.
"""
