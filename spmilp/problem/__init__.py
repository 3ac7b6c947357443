"""The mapping problem: buffers, slices and tasks on a machine.

    problem, objective           the problem as all else sees it, and what a plan minimises
    pins, named_pins             what is pinned; the same by names, from a file
    contradictions               where pins let tasks run and buffers lie; pins that leave no plan
    strides                      the shape of a copy
    loads                        what must leave a DRAM at least; bytes that tasks read
    several                      networks that are together in a problem: rates, deadlines, whose
                                 tasks and buffers are whose
    builder                      problems built by hand, by names
    file                         ``problem.json``; ``problem.schema.json`` is its JSON Schema
A problem holds integers alone, and refers to its parts by index.
"""
