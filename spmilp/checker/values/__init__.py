"""The value replay: a plan run on real numbers, through the bytes of its memories.

    compare    against onnxruntime on the model that the problem was made from
    replay     tasks and transfers as they happen, and what each computes
    inputs     the values at the beginning
    state      memories as arrays of bytes, and where the values of a plan lie in them
    kernels    what an operator computes
It shares no code with the lowering that it checks.
"""
