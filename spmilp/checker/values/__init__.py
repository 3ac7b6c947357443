"""The value replay: plans run on real numbers.

replay, delays     a plan run by its times; its command lists run with random delays
with_model         a plan against the model of its problem; ``compare``: differences of outputs
state, memory      memories as bytes while a plan runs
addresses, inputs  boxes of tensors and their addresses; inputs and constants
tasks, kernels     the values that a task computes; kernels by operator
errors             errors of the replay
"""
