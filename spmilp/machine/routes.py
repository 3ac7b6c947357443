"""Routes between memories, computed once for each pair that is asked for.

Two rules, named by :class:`~spmilp.machine.machine.Routing`:

``xy``
    A path goes from its memory to the nearest router, along x, then along y, then to the other
    memory. Between routers that lie on a grid with wrap-around links, each axis takes the shorter
    way, the increasing one when both are equally long.
``shortest``
    Least latency, then fewest links, then the least sequence of link indices.
"""
