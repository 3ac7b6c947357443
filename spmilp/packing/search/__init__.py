"""The compiled depth-first search: one part of an instance, one capacity.

    rules             the prunings as switches, each with the proof that it loses no solution
    arrays            the instance's tables, the changing state, the stack frames
    place             placing an item, and tests whether the others still fit
    frames, kernel    a node of the search, its main loop
    run               one run as an object that can be continued
Its state is flat arrays, compiled by numba.
"""
