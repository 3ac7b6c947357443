"""The value replay: a plan run on real numbers, through the bytes of its memories.

    compare    against the model that the problem was made from
    nodes      the model's nodes one by one, with onnxruntime, and how far rounding may lead
    replay     tasks and transfers as they happen, and what each computes
    inputs     the values at the beginning
    state      memories as arrays of bytes, and where the values of a plan lie in them
    kernels    what an operator computes
It shares no code with the lowering that it checks.
"""
