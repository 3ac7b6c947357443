"""Command lists run as hardware runs them: nobody starts at a time, everybody when it may.

    sharing    bytes per cycle of transfers that are on the same links (compiled)
    events     lists of steps, from event to event
    simulate   a plan's command lists as such lists, with times that vary; what came of it

It knows nothing of a plan's times, and shares no code with the solvers and the checker.
"""
