"""The value replay: a plan run on real numbers, through the bytes of its memories.

    compare           against onnxruntime on the model that the problem was made from
    replay, delays    tasks and transfers in time, or with random delays
    inputs            the values at the beginning
    tasks, kernels    what a task computes
    state             memories as arrays of bytes
    addresses         where the values of a plan lie
    errors            errors of the replay
It shares no code with the lowering that it checks.
"""
